"""The grammar makes what its parser accepts, and the parser accepts nothing else."""

import random

import pytest

from keras_elf.testing import TemplateGrammar

pytestmark = pytest.mark.backend_free
GRAMMAR = TemplateGrammar()


def test_every_sentence_is_grammatical_and_has_five_to_twelve_words():
    sentences = GRAMMAR.sentences(2000, seed=1)
    assert GRAMMAR.grammatical_share(sentences) == 1.0
    lengths = {len(sentence.split()) for sentence in sentences}
    assert lengths == set(range(5, 13))


def test_all_words_are_used_and_there_are_about_fifty():
    used = {word for sentence in GRAMMAR.sentences(3000, seed=2) for word in sentence.split()}
    assert sorted(used) == GRAMMAR.words
    assert 45 <= len(used) <= 55


def test_shuffled_words_are_almost_never_accepted():
    rng = random.Random(0)
    shuffled = [" ".join(rng.sample(s.split(), len(s.split()))) for s in GRAMMAR.sentences(5000)]
    assert GRAMMAR.grammatical_share(shuffled) < 0.02


@pytest.mark.parametrize(
    "text",
    [
        "my red foxes paints your horse",  # The verb's number.
        "every dogs waits near the fox",  # The determiner's number.
        "a old fox sees this dog",  # The article, by the adjective.
        "an old fox sees an dog",  # The article, by the noun.
        "the fox paints slowly near",  # An adverb in the object's place.
        "my red fox paints your",  # Cut short.
        "my red fox paints your horse and",
        "my red fox paints your horse horse",
        "this fox sleeps",  # A clause, but too short for a sentence.
        "my red cat paints your horse",  # Another word.
        "",
    ],
)
def test_what_is_wrong_is_refused(text):
    assert not GRAMMAR.is_grammatical(text)


def test_what_is_right_is_accepted_though_never_drawn():
    assert GRAMMAR.is_grammatical("my red fox paints your horse")
    assert GRAMMAR.is_grammatical("an old fox sees a dog but the owls never sing slowly")


def test_one_wrong_word_is_noticed_mostly():
    """Other words of the grammar in one place: the class or a form is wrong more often than not."""
    rng = random.Random(3)
    damaged = []
    for sentence in GRAMMAR.sentences(2000, seed=3):
        words = sentence.split()
        words[rng.randrange(len(words))] = rng.choice(GRAMMAR.words)
        damaged.append(" ".join(words))
    assert GRAMMAR.grammatical_share(damaged) < 0.15


def test_seeds_decide():
    assert GRAMMAR.sentences(20, seed=4) == GRAMMAR.sentences(20, seed=4)
    assert GRAMMAR.sentences(20, seed=4) != GRAMMAR.sentences(20, seed=5)


def test_a_split_shares_no_sentence():
    train, held_out = GRAMMAR.split(3000, 200, seed=0)
    assert (len(set(train)), len(set(held_out))) == (3000, 200)
    assert not set(train) & set(held_out)


def test_rules_of_ones_own():
    nested = TemplateGrammar({"S": ["x", "( S )"]}, minimum_words=1, maximum_words=7)
    assert nested.is_grammatical("( ( x ) )")
    assert not nested.is_grammatical("( ( x )")
    assert set(nested.distinct_sentences(4)) == {"x", "( x )", "( ( x ) )", "( ( ( x ) ) )"}
    with pytest.raises(ValueError, match="fewer than 5"):
        nested.distinct_sentences(5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rules": {"S": ["x"]}, "start": "T"}, "`start`"),
        ({"rules": {"S": []}}, "alternative"),
        ({"rules": {"S": ["A x"], "A": ["S y", "z"]}}, "begins with itself"),
        ({"minimum_words": 9, "maximum_words": 8}, "maximum_words"),
    ],
)
def test_bad_grammars_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        TemplateGrammar(**arguments)


def test_a_share_needs_texts():
    with pytest.raises(ValueError, match="texts"):
        GRAMMAR.grammatical_share([])
    with pytest.raises(ValueError, match="texts"):
        GRAMMAR.grammatical_share("my red fox paints your horse")
