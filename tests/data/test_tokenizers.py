import itertools
import os
import warnings

import keras_hub
import pytest
import sentencepiece

from keras_elf.data import train_sentencepiece
from tests.data import small

pytestmark = pytest.mark.backend_free


def test_special_tokens_are_those_of_t5():
    processor = sentencepiece.SentencePieceProcessor(model_proto=small.proto())
    assert processor.vocab_size() == small.VOCABULARY_SIZE
    assert [processor.IdToPiece(i) for i in range(3)] == ["<pad>", "</s>", "<unk>"]
    assert (processor.pad_id(), processor.eos_id(), processor.unk_id()) == (0, 1, 2)
    assert processor.bos_id() == -1


@pytest.mark.parametrize(
    "tokenizer_class",
    [keras_hub.models.T5Tokenizer, keras_hub.tokenizers.SentencePieceTokenizer],
)
def test_loads_in_keras_hub(tokenizer_class):
    tokenizer = tokenizer_class(proto=small.proto())
    ids = tokenizer.tokenize(small.verses()[:5])
    assert tokenizer.detokenize(ids) == small.verses()[:5]


def test_same_bytes_from_list_generator_and_file(tmp_path):
    source, target = tmp_path / "corpus.txt", tmp_path / "model.spm"
    # A byte-order mark, Windows line ends and blank lines change nothing.
    text = "\r\n\r\n".join(small.verses()) + "\r\n"
    source.write_bytes(text.encode("utf-8-sig"))
    proto = train_sentencepiece(source, small.VOCABULARY_SIZE, target)
    assert proto == small.proto()
    assert target.read_bytes() == proto
    assert train_sentencepiece((v for v in small.verses()), small.VOCABULARY_SIZE) == proto
    assert sorted(os.listdir(tmp_path)) == ["corpus.txt", "model.spm"]


def test_max_sentences_is_a_seeded_draw():
    one, same, other = (
        train_sentencepiece(small.verses(), 100, max_sentences=50, seed=seed) for seed in (0, 0, 1)
    )
    assert one == same != other
    assert one != train_sentencepiece(small.verses()[:50], 100), "the draw must reach all texts"


@pytest.mark.parametrize("model_type, size", [("bpe", 60), ("char", 50), ("word", 60)])
def test_other_model_types(model_type, size):
    proto = train_sentencepiece(small.verses(), size, model_type=model_type)
    assert sentencepiece.SentencePieceProcessor(model_proto=proto).vocab_size() == size


def test_byte_fallback_spells_unknown_characters():
    text = "snow \u2603"
    proto = train_sentencepiece(small.verses(), 400, byte_fallback=True)
    tokenizer = keras_hub.models.T5Tokenizer(proto=proto)
    assert tokenizer.detokenize(tokenizer.tokenize([text])) == [text]
    tokenizer = keras_hub.models.T5Tokenizer(proto=small.proto())
    assert tokenizer.detokenize(tokenizer.tokenize([text])) != [text]


def test_one_giant_line_is_not_dropped():
    line = " ".join(small.verses())
    assert len(line.encode()) > 4192
    processor = sentencepiece.SentencePieceProcessor(model_proto=train_sentencepiece([line], 100))
    assert processor.vocab_size() == 100


def test_quiet(capfd):
    train_sentencepiece(small.verses()[:50], 60)
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


@pytest.mark.parametrize("model_type", ["unigram", "bpe", "word", "char", "whole_words"])
def test_too_few_pieces_names_the_largest_size(model_type):
    with pytest.raises(ValueError, match="fewer pieces.*Received: 5000.*largest") as caught:
        train_sentencepiece(small.verses()[:20], 5000, model_type=model_type)
    largest = int(str(caught.value).split("corpus is ")[1].split(";")[0])
    proto = train_sentencepiece(small.verses()[:20], largest, model_type=model_type)
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    assert processor.vocab_size() == largest


@pytest.mark.parametrize("model_type", ["unigram", "whole_words"])
def test_too_many_characters_names_the_smallest_size(model_type):
    texts = ["abcdef abcdef", "fedcba"]
    with pytest.raises(ValueError, match="too small.*Received: 5. The smallest .* is") as caught:
        train_sentencepiece(texts, 5, model_type=model_type)
    smallest = int(str(caught.value).split("size is ")[1].split(";")[0])
    assert smallest > 5
    train_sentencepiece(texts, smallest, model_type=model_type)
    with pytest.raises(ValueError, match="too small"):
        train_sentencepiece(texts, smallest - 1, model_type=model_type)


@pytest.mark.parametrize("source", [[], ["", "  "], iter([])])
def test_empty_corpus(source):
    with pytest.raises(ValueError, match="`source` holds no text"):
        train_sentencepiece(source, 50)


def test_empty_file(tmp_path):
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(ValueError, match="holds no text.*empty.txt"):
        train_sentencepiece(tmp_path / "empty.txt", 50)


@pytest.mark.parametrize("max_sentences", [None, 10])
def test_invalid_utf8_names_the_line(tmp_path, max_sentences):
    path = tmp_path / "latin.txt"
    path.write_bytes(b"first line\nsecond line\ncaf\xe9\nfourth\n")
    with pytest.raises(ValueError, match="latin.txt', line 3, byte 3: not UTF-8"):
        train_sentencepiece(path, 50, tmp_path / "out.spm", max_sentences=max_sentences)
    assert os.listdir(tmp_path) == ["latin.txt"]


def test_errors_of_the_iterable_come_through():
    def source():
        yield "some text"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        train_sentencepiece(source(), 50)
    with pytest.raises(ValueError, match=r"must yield str. Received: 3 .*index 1"):
        train_sentencepiece(["a text", 3], 50)


def test_ctrl_c_comes_through():
    def source():
        yield "some text"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_sentencepiece(source(), 50)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="`source` must be a text file.*nothing.txt"):
        train_sentencepiece(tmp_path / "nothing.txt", 50)


@pytest.mark.parametrize("place", ["missing/model.spm", "file/model.spm", "folder"])
def test_unwritable_target(tmp_path, place):
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="`path` cannot be written"):
        train_sentencepiece(small.verses(), 100, tmp_path / place)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
    assert not os.listdir(tmp_path / "folder")


def test_failure_keeps_the_old_file(tmp_path):
    (tmp_path / "model.spm").write_bytes(b"old")
    with pytest.raises(ValueError, match="fewer pieces"):
        train_sentencepiece(small.verses()[:20], 5000, tmp_path / "model.spm")
    assert (tmp_path / "model.spm").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.spm"]


@pytest.mark.parametrize(
    "kwargs, message",
    [
        (dict(vocabulary_size=3), "`vocabulary_size` must be"),
        (dict(vocabulary_size=2**63), "`vocabulary_size` must be"),
        (dict(vocabulary_size=100.0), "`vocabulary_size` must be"),
        (dict(model_type="unigrams"), "Did you mean 'unigram'"),
        (dict(normalization="nfc"), "`normalization` must be"),
        (dict(max_sentences=0), "`max_sentences` must be"),
        (dict(seed=None), "`seed` must be"),
        (dict(character_coverage=2.0), "`character_coverage` must be"),
        (dict(source=5), "`source` must be the path"),
        (dict(source=b"bytes"), "`source` must be the path"),
    ],
)
def test_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        train_sentencepiece(**{"source": small.verses(), "vocabulary_size": 100, **kwargs})


def templates():
    """144 sentences of 18 different words."""
    parts = ("The My", "red old big", "fox dog cat", "sees finds", "your horse|a hen|his cow|men")
    subjects = itertools.product(*(part.split() for part in parts[:4]), parts[4].split("|"))
    return [" ".join(words) + ("." if len(words[1]) == 3 else "!") for words in subjects]


def processor(source, *args, **kwargs):
    proto = train_sentencepiece(source, *args, **kwargs)
    return sentencepiece.SentencePieceProcessor(model_proto=proto)


def test_auto_gives_each_of_few_words_its_piece():
    found = processor(templates(), model_type="auto")
    assert found.encode("My old dog finds a hen.", out_type=str) == [
        *("\u2581My", "\u2581old", "\u2581dog", "\u2581finds", "\u2581a", "\u2581hen", ".")
    ]
    assert all(len(found.encode(text)) == len(text.split()) + 1 for text in templates())
    special = [found.id_to_piece(i) for i in range(3)]
    assert special == ["<pad>", "</s>", "<unk>"]
    assert (found.pad_id(), found.eos_id(), found.unk_id(), found.bos_id()) == (0, 1, 2, -1)


def test_auto_takes_letters_where_words_do_not_fit():
    found = processor(templates(), 35, model_type="auto")
    assert found.vocab_size() <= 35
    assert len(found.encode(templates()[0])) > 8


def test_auto_takes_unigram_for_prose():
    texts = small.verses()
    size = round(4 * sum(map(len, texts)) ** 0.5)
    proto = train_sentencepiece(texts, model_type="auto")
    assert proto == train_sentencepiece(texts, size)
    assert train_sentencepiece(texts, 300, model_type="auto") == train_sentencepiece(texts, 300)
    with pytest.raises(ValueError) as caught:
        train_sentencepiece(texts, 1_000_000)
    largest = int(str(caught.value).split("corpus is ")[1].split(";")[0])
    proto = train_sentencepiece(texts, 1_000_000, model_type="auto")
    assert proto == train_sentencepiece(texts, largest)


@pytest.mark.parametrize("model_type", ["unigram", "bpe", "char", "word"])
def test_no_size_gives_one_that_works(model_type):
    proto = train_sentencepiece(small.verses()[:20], model_type=model_type)
    size = sentencepiece.SentencePieceProcessor(model_proto=proto).vocab_size()
    assert train_sentencepiece(small.verses()[:20], size, model_type=model_type) == proto


@pytest.mark.parametrize("size", [120, 400])
def test_whole_words_give_back_the_text(size):
    tokenizer = keras_hub.models.T5Tokenizer(
        proto=train_sentencepiece([*small.verses(), "(he)"], size, model_type="whole_words")
    )
    assert tokenizer.vocabulary_size() == size
    texts = [*small.verses(), "Said he, Bethel (the place) is Ham's: go; where?"]
    ids = tokenizer.tokenize(texts)
    assert tokenizer.detokenize(ids) == texts
    assert not any(tokenizer.token_to_id("<unk>") in row for row in ids)


def test_whole_words_prefer_one_piece_to_any_two():
    texts = ["be came became", "be came", "be came", "became"]
    found = processor(texts, model_type="whole_words")
    assert found.encode("became be", out_type=str) == ["\u2581became", "\u2581be"]


def test_whole_words_in_lower_case_and_with_accents():
    found = processor(
        ["L\u2019\u00e9t\u00e9 VIENT.", "\u0939\u093f\u0928\u094d\u0926\u0940 don't!"] * 2,
        model_type="auto",
        normalization="nmt_nfkc_cf",
    )
    assert found.encode("VIENT, Don't!", out_type=str)[0] == "\u2581vient"
    assert found.encode("Don't!", out_type=str) == ["\u2581don't", "!"]
    assert len(found.encode("\u0939\u093f\u0928\u094d\u0926\u0940")) == 1


def test_whole_words_with_bytes_spell_unknown_characters():
    found = processor(templates(), 340, model_type="auto", byte_fallback=True)
    assert found.decode(found.encode("The red \u2603.")) == "The red \u2603."
    assert found.encode("The red fox", out_type=str) == ["\u2581The", "\u2581red", "\u2581fox"]


def test_coverage_of_rare_characters_can_be_given_up():
    texts = [*templates() * 3, "\u00bfx?"]
    assert processor(texts, model_type="auto").encode("\u00bf")[-1] != 2
    found = processor(texts, model_type="auto", character_coverage=0.999)
    assert found.encode("\u00bf")[-1] == 2


@pytest.mark.parametrize("model_type", ["unigram", "whole_words"])
def test_text_can_be_kept_exactly(model_type):
    text = "  if x:\n\t  return  \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 "
    exact = processor(
        [text] * 3,
        model_type=model_type,
        character_coverage=1.0,
        normalization="identity",
        keep_whitespace=True,
    )
    assert exact.decode(exact.encode(text)) == text
    lossy = processor([text] * 3, model_type=model_type, character_coverage=1.0)
    assert (
        lossy.decode(lossy.encode(text))
        == "if x: return \u0645\u06cc \u062e\u0648\u0627\u0647\u0645"
    )


def test_whole_words_are_reproducible_and_read_without_protobuf(tmp_path):
    pb2 = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    first, second = (
        train_sentencepiece(iter(small.verses()), 400, tmp_path / "m.spm", model_type="whole_words")
        for _ in range(2)
    )
    assert first == second == (tmp_path / "m.spm").read_bytes()
    model = pb2.ModelProto.FromString(first)
    assert model.trainer_spec.model_type == model.trainer_spec.UNIGRAM
    assert model.trainer_spec.vocab_size == len(model.pieces) == 400
    assert model.normalizer_spec.precompiled_charsmap
    assert len({p.piece for p in model.pieces}) == 400


@pytest.mark.parametrize("lost", ["می\u200cخواهم", "one\ntwo", "one\ttwo", "    one", "one\n  two"])
def test_what_a_tokenizer_loses_is_told(lost):
    texts = [lost, "many other words are in the text", "and more of them"] * 4
    with pytest.warns(UserWarning, match="does not keep"):
        lossy = train_sentencepiece(texts, model_type="char")
    assert _there_and_back(lossy, lost) != lost
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exact = train_sentencepiece(
            texts, model_type="char", normalization="identity", keep_whitespace=True
        )
        train_sentencepiece(["plain words"] * 4, model_type="char")
    assert _there_and_back(exact, lost) == lost


def _there_and_back(proto, text):
    processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
    return processor.decode(processor.encode(text))
