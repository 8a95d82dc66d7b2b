import warnings

import keras
import keras_hub
import numpy as np
import pytest

from keras_elf.data import decode_texts, encode_texts, special_token_ids, to_token_ids
from tests.data import small

pytestmark = pytest.mark.backend_free

TEXT = "In the beginning"


def encoded(texts, sequence_length=16, **kwargs):
    return encode_texts(texts, small.tokenizer(), sequence_length, **kwargs)


def test_text_is_tokenized_ended_and_padded():
    rows = encoded([TEXT, "And"])
    ids = small.tokenizer().tokenize([TEXT, "And"])
    for row, expected in zip(rows["token_ids"], ids, strict=True):
        assert row.tolist() == expected + [1] + [0] * (15 - len(expected))
    assert {type(array) for array in rows.values()} == {np.ndarray}
    assert rows["token_ids"].dtype == np.int32


def test_one_str_is_one_text():
    np.testing.assert_array_equal(encoded(TEXT)["token_ids"], encoded([TEXT])["token_ids"])


def test_conditions_stand_before():
    rows = encoded(["And"], conditions=[TEXT])
    ids = small.tokenizer().tokenize([TEXT, "And"])
    assert rows["token_ids"][0, rows["is_valid"][0]].tolist() == ids[0] + ids[1] + [1]
    assert rows["token_ids"][0, rows["is_cond"][0]].tolist() == ids[0]


def test_cut_texts_are_counted():
    with pytest.warns(UserWarning, match="2 of 3 texts .* cut to `sequence_length=8`"):
        rows = encoded([*small.verses()[:2], "And"], sequence_length=8)
    assert rows["is_valid"][:2].all()
    with pytest.warns(UserWarning, match="1 of 1 .*`sequence_length=64` and `condition_length=2`"):
        encoded(["And"], sequence_length=64, conditions=[TEXT], condition_length=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoded(["And"])


@pytest.mark.parametrize(
    "form",
    [
        lambda ids: ids,
        lambda ids: [tuple(row) for row in ids],
        lambda ids: [np.array(row, "int64") for row in ids],
        lambda ids: np.array([row + [0] * (20 - len(row)) for row in ids]),
        lambda ids: keras.ops.convert_to_tensor([row + [0] * (20 - len(row)) for row in ids]),
    ],
    ids=["lists", "tuples", "arrays", "padded_array", "tensor"],
)
def test_ids_in_place_of_text(form):
    ids = [list(row) for row in small.tokenizer().tokenize([TEXT, "And"])]
    np.testing.assert_array_equal(
        encoded(form(ids))["token_ids"], encoded([TEXT, "And"])["token_ids"]
    )


def test_flat_ids_are_one_text():
    assert to_token_ids("x", [5, 6, 7], small.tokenizer()) == [[5, 6, 7]]
    assert to_token_ids("x", np.array([5, 6, 0]), small.tokenizer()) == [[5, 6]]


def test_string_arrays_and_bytes():
    expected = encoded([TEXT, "And"])["token_ids"]
    for texts in (np.array([TEXT, "And"]), np.array([TEXT, "And"], object), [TEXT.encode(), "And"]):
        np.testing.assert_array_equal(encoded(texts)["token_ids"], expected)


@pytest.mark.parametrize(
    "texts, message",
    [
        ([], "`texts` must hold at least one entry"),
        (["And", ""], "`texts` must not hold empty texts. Received: '' at index 1"),
        (["And", " \n"], "at index 1"),
        ([[5], []], r"Received: \[\] at index 1"),
        (np.zeros((2, 4), "int32"), "at index 0"),
        (["And", None], "`texts` at index 1 must be text, like.*None"),
        (["And", [5]], "at index 1 must be text"),
        ([[5], "And"], "`texts` at index 1 must be .*'And'"),
        ([None], "`texts` at index 0 must be"),
        ([1.5], "`texts` at index 0 must be"),
        (np.zeros((1, 3)), "`texts` at index 0 must be"),
        (np.ones((1, 2, 3), "int32"), "`texts` at index 0 must be"),
        ([[True]], "`texts` at index 0 must be"),
        (5, "`texts` must be text or token ids.*Received: 5"),
        (None, "`texts` must be text or token ids.*None"),
        ({"a": 1}, "`texts` must be text or token ids"),
        ([[5], [6, 200]], r"`texts`: Token ids .*\[0, 200\).*Received: 200 at index \[1, 1\]"),
        ([[-1]], "Received: -1"),
    ],
)
def test_refused(texts, message):
    with pytest.raises(ValueError, match=message):
        encoded(texts)


def test_empty_condition_is_refused():
    with pytest.raises(ValueError, match="`conditions` must not hold empty texts.*index 1"):
        encoded(["And", "And"], conditions=[TEXT, ""])
    with pytest.raises(ValueError, match="1 conditions, 2 targets"):
        encoded(["And", "And"], conditions=[TEXT])


def test_larger_vocabulary():
    assert encoded([[5, 250]], vocabulary_size=300)["token_ids"][0, 1] == 250


def test_untrained_tokenizer():
    with pytest.raises(ValueError, match=r"T5Tokenizer\) is untrained"):
        encode_texts(["And"], keras_hub.models.T5Tokenizer(proto=None), 8)


def test_tokenizer_without_special_tokens():
    import io

    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(small.verses()), model_writer=model, vocab_size=100, minloglevel=2
    )
    tokenizer = keras_hub.tokenizers.SentencePieceTokenizer(proto=model.getvalue())
    with pytest.raises(ValueError, match="no '<pad>' token"):
        special_token_ids(tokenizer)


def test_special_tokens_by_name():
    tokenizer = keras_hub.tokenizers.SentencePieceTokenizer(proto=small.proto())
    assert special_token_ids(tokenizer) == special_token_ids(small.tokenizer()) == (0, 1)


def test_decoding_undoes_encoding():
    rows = encoded(small.verses()[:3], sequence_length=128, conditions=[TEXT] * 3)
    tensor = keras.ops.convert_to_tensor(rows["token_ids"])
    is_cond = keras.ops.convert_to_tensor(rows["is_cond"])
    assert decode_texts(tensor, small.tokenizer(), is_cond) == small.verses()[:3]
    assert decode_texts(rows["token_ids"][:1], small.tokenizer())[0].startswith(TEXT)


def test_decoding_stops_at_the_end_and_skips_what_has_no_piece():
    ids = [small.tokenizer().tokenize([TEXT])[0] + [250, 0, 1, 40, 41], [1] * 5]
    ids = np.array([row + [0] * (24 - len(row)) for row in ids])
    assert decode_texts(ids, small.tokenizer(), vocabulary_size=300) == [TEXT, ""]
    with pytest.raises(ValueError, match=r"Received: 250 at index \[0, \d+\]"):
        decode_texts(ids, small.tokenizer())
    with pytest.raises(ValueError, match="`is_cond` must have the shape"):
        decode_texts(ids, small.tokenizer(), np.zeros((2, 3)), vocabulary_size=300)
