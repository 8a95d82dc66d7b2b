import json
import os
import pathlib
import shutil

import keras
import keras_hub
import numpy as np
import pytest

from keras_elf.models.preprocessor import ELFPreprocessor
from tests.data import small

pytestmark = pytest.mark.without_tensorflow

TEXT = "In the beginning"


def made(sequence_length=32, tokenizer=None, **kwargs):
    return ELFPreprocessor(tokenizer or small.tokenizer(), sequence_length, **kwargs)


def assert_equal_rows(one, other):
    assert set(one) == set(other) == {"token_ids", "is_cond", "is_valid"}
    for key, array in one.items():
        assert isinstance(array, np.ndarray)
        assert array.dtype == other[key].dtype
        np.testing.assert_array_equal(array, other[key])


def test_text_to_rows_and_back():
    preprocessor = made(128)
    verses = small.verses()[:4]
    rows = preprocessor(verses)
    assert rows["token_ids"].shape == (4, 128) and rows["token_ids"].dtype == np.int32
    assert not rows["is_cond"].any()
    assert preprocessor.generate_postprocess(rows["token_ids"]) == verses
    assert_equal_rows(preprocessor(verses[0]), {k: v[:1] for k, v in rows.items()})


def test_pairs_to_rows_and_back():
    preprocessor = made(64, condition_length=16)
    rows = preprocessor({"condition": [TEXT], "target": ["God created"]})
    assert preprocessor.generate_postprocess(**{k: rows[k] for k in ("token_ids", "is_cond")}) == [
        "God created"
    ]
    ids = [small.tokenizer().tokenize([text])[0] for text in (TEXT, "God created")]
    assert_equal_rows(preprocessor({"condition": [ids[0]], "target": [ids[1]]}), rows)
    assert_equal_rows(preprocessor({"condition": TEXT, "target": "God created"}), rows)


def test_options_reach_the_rows():
    preprocessor = made(8, pad_with="end", add_end_token=False)
    assert preprocessor([[5]])["token_ids"].tolist() == [[5, 1, 1, 1, 1, 1, 1, 1]]


def test_generate_preprocess():
    preprocessor = made(16, condition_length=4)
    rows = preprocessor.generate_preprocess([[5, 6], [7]])
    assert rows["is_cond"].sum(axis=1).tolist() == [2, 1]
    assert rows["token_ids"].tolist() == [[5, 6] + [0] * 14, [7] + [0] * 15]
    assert rows["is_valid"].all()
    assert_equal_rows(
        preprocessor.generate_preprocess("the"), preprocessor.generate_preprocess(["the"])
    )
    with pytest.warns(UserWarning, match="1 of 2 .*`condition_length=4`"):
        preprocessor.generate_preprocess([[5, 6, 7, 8, 9], [7]])


def test_ready_rows_are_passed_on():
    preprocessor = made()
    rows = preprocessor([TEXT])
    assert preprocessor(rows) is rows
    with pytest.raises(ValueError, match=r"must have the shape \(rows, 32\)"):
        preprocessor({key: array[:, :8] for key, array in rows.items()})
    with pytest.raises(ValueError, match="must have the keys"):
        preprocessor({"token_ids": rows["token_ids"]})
    with pytest.raises(ValueError, match="Received: 200"):
        preprocessor({**rows, "token_ids": np.full_like(rows["token_ids"], 200)})


def test_properties():
    preprocessor = made()
    assert (preprocessor.pad_token_id, preprocessor.end_token_id) == (0, 1)
    assert preprocessor.vocabulary_size == small.VOCABULARY_SIZE
    assert made(vocabulary_size=300).vocabulary_size == 300
    with pytest.raises(ValueError, match="`vocabulary_size` must be .*>= 200"):
        made(vocabulary_size=100).vocabulary_size  # noqa: B018


@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_labels_and_weights_are_refused(name):
    with pytest.raises(ValueError, match=f"`{name}` must not be given"):
        made()([TEXT], **{name: [1]})


def test_tensorflow_tokenizer_gives_the_same():
    pytest.importorskip("tensorflow_text", exc_type=ImportError)
    tokenizer = keras_hub.models.T5Tokenizer(proto=small.proto(), _allow_python_workflow=False)
    preprocessor = made(128, tokenizer=tokenizer)
    rows = preprocessor(small.verses()[:3])
    assert_equal_rows(rows, made(128)(small.verses()[:3]))
    assert preprocessor.generate_postprocess(rows["token_ids"]) == small.verses()[:3]


def test_tf_data_graph_is_refused_with_advice():
    tf = pytest.importorskip("tensorflow", exc_type=ImportError)
    with pytest.raises(TypeError, match="Encode it first"):
        tf.data.Dataset.from_tensor_slices([TEXT]).batch(1).map(made())


def test_config_round_trip():
    preprocessor = made(
        condition_length=8, pad_with="end", add_end_token=False, vocabulary_size=300, name="mine"
    )
    config = keras.saving.serialize_keras_object(preprocessor)
    assert config["registered_name"] == "keras_elf>ELFPreprocessor"
    json.dumps(config)
    again = keras.saving.deserialize_keras_object(config)
    assert again.get_config() == preprocessor.get_config()
    assert again.name == "mine"


@pytest.mark.parametrize("as_str", [True, False])
def test_preset_round_trip(tmp_path, as_str):
    path = str(tmp_path / "preset") if as_str else tmp_path / "preset"
    preprocessor = made(condition_length=8)
    preprocessor.save_to_preset(path)
    assert (tmp_path / "preset/assets/tokenizer/vocabulary.spm").read_bytes() == small.proto()
    again = ELFPreprocessor.from_preset(path)
    assert again.get_config() == preprocessor.get_config()
    assert_equal_rows(again([TEXT]), preprocessor([TEXT]))
    assert ELFPreprocessor.from_preset(path, sequence_length=16).sequence_length == 16
    with pytest.raises(TypeError, match="unknown arguments \\['length'\\]"):
        ELFPreprocessor.from_preset(path, length=16)


def test_bad_presets(tmp_path):
    with pytest.raises(ValueError, match="no file 'preprocessor.json'"):
        ELFPreprocessor.from_preset(tmp_path / "missing")
    preset = tmp_path / "preset"
    made().save_to_preset(preset)

    def copy(name):
        return pathlib.Path(shutil.copytree(preset, tmp_path / name))

    shutil.rmtree(copy("no_vocabulary") / "assets")
    with pytest.raises(ValueError, match="no_vocabulary' is missing or damaged"):
        ELFPreprocessor.from_preset(tmp_path / "no_vocabulary")
    (copy("broken") / "assets/tokenizer/vocabulary.spm").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="broken' is missing or damaged"):
        ELFPreprocessor.from_preset(tmp_path / "broken")
    (copy("truncated") / "preprocessor.json").write_text('{"module": ')
    with pytest.raises(ValueError, match="truncated' is not valid JSON"):
        ELFPreprocessor.from_preset(tmp_path / "truncated")
    other = json.dumps(keras.saving.serialize_keras_object(keras.layers.Dense(3)))
    (copy("other") / "preprocessor.json").write_text(other)
    with pytest.raises(ValueError, match="where ELFPreprocessor was asked for"):
        ELFPreprocessor.from_preset(tmp_path / "other")


def test_untrained_tokenizer(tmp_path):
    preprocessor = made(tokenizer=keras_hub.models.T5Tokenizer(proto=None))
    for use in (
        lambda: preprocessor([TEXT]),
        lambda: preprocessor([[5]]),
        lambda: preprocessor.generate_preprocess([TEXT]),
        lambda: preprocessor.generate_postprocess(np.zeros((1, 4), "int32")),
        lambda: preprocessor.vocabulary_size,
        lambda: preprocessor.save_to_preset(tmp_path / "preset"),
    ):
        with pytest.raises(ValueError, match="untrained"):
            use()
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "kwargs, error, message",
    [
        (dict(sequence_length=0), ValueError, "`sequence_length` must be"),
        (dict(condition_length=32), ValueError, "`condition_length` must be smaller"),
        (dict(pad_with="eos"), ValueError, "`pad_with` must be one of"),
        (dict(vocabulary_size=0), ValueError, "`vocabulary_size` must be"),
        (dict(length=3), TypeError, "unknown arguments \\['length'\\]"),
        (dict(tokenizer="t5.spm"), ValueError, "`tokenizer` must be a `keras_hub"),
    ],
)
def test_refused_arguments(kwargs, error, message):
    with pytest.raises(error, match=message):
        made(**kwargs)


@pytest.mark.parametrize(
    "options", [dict(sequence_length=8), dict(add_eos=True), dict(dtype="string")]
)
def test_tokenizers_with_a_mind_of_their_own(options):
    with pytest.raises(ValueError, match="`tokenizer` must"):
        made(tokenizer=keras_hub.models.T5Tokenizer(proto=small.proto(), **options))


@pytest.mark.parametrize(
    "x, message",
    [
        ([], "at least one entry"),
        (["And", ""], "empty texts.*at index 1"),
        (["And", 5], "at index 1 must be text"),
        ({"condition": ["And"]}, "must have the keys 'target'"),
        ({"target": ["And"], "source": ["x"]}, r"Received keys: \['source', 'target'\]"),
        ({"target": ["And"], "condition": [""]}, "`conditions` must not hold empty texts"),
        ([[5, 999]], r"\[0, 200\).*999"),
    ],
)
def test_refused_inputs(x, message):
    with pytest.raises(ValueError, match=message):
        made()(x)


@pytest.mark.parametrize("conditions", [[], [""], [None], [[-1]]])
def test_refused_conditions(conditions):
    with pytest.raises(ValueError, match="`conditions`"):
        made().generate_preprocess(conditions)


@pytest.mark.parametrize("config, extra_ids", [(None, 100), ({"extra_ids": 7}, 7), ({}, 100)])
def test_from_transformers(tmp_path, config, extra_ids):
    (tmp_path / "spiece.model").write_bytes(small.proto())
    if config is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    preprocessor = ELFPreprocessor.from_transformers(tmp_path, sequence_length=32)
    assert preprocessor.vocabulary_size == small.VOCABULARY_SIZE + extra_ids
    assert_equal_rows(preprocessor([TEXT]), made()([TEXT]))
    rows = np.array([[5, small.VOCABULARY_SIZE + extra_ids - 1, 1]])
    assert preprocessor.generate_postprocess(rows) == made().generate_postprocess(rows[:, :1])


def test_from_bad_transformers(tmp_path):
    with pytest.raises(ValueError, match="no file 'spiece.model'"):
        ELFPreprocessor.from_transformers(tmp_path, sequence_length=32)
    (tmp_path / "spiece.model").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="not a SentencePiece model"):
        ELFPreprocessor.from_transformers(tmp_path, sequence_length=32)
