import importlib.resources
import re

import pytest

from keras_elf.data import king_james_clauses, king_james_verses

pytestmark = pytest.mark.backend_free


def test_all_verses_are_there():
    verses = king_james_verses()
    assert len(verses) == 31103
    assert verses[0] == "In the beginning God created the heaven and the earth."
    assert verses[-1] == "The grace of our Lord Jesus Christ be with you all. Amen."
    assert all(verse and verse == verse.strip() for verse in verses)


def test_callers_may_change_their_list():
    king_james_verses().clear()
    assert king_james_verses()


def test_notice_travels_with_the_text():
    notice = importlib.resources.files("keras_elf.data") / "corpora" / "NOTICE"
    assert "public domain" in notice.read_text(encoding="utf-8")


def test_clauses():
    clauses, apart = king_james_clauses(), king_james_clauses(held_out=True)
    assert not set(clauses) & set(apart) and len(apart) > 1000
    assert "And God said, Let there be light:" in apart + clauses
    for clause in clauses[:2000]:
        assert 5 <= len(clause.split()) <= 21 and clause[0].isupper()
    # Nothing but capitals was changed: a clause stands in a verse.
    verses = " ".join(king_james_verses()[:200]).lower()
    assert all(clause.lower() in verses for clause in clauses[:200])


def test_clauses_of_known_words():
    class Tokenizer:
        def tokenize(self, text):
            # "God" has no piece and is spelled.
            return re.findall(r"\w+(?:'\w+)*|[^\w\s]", text.replace("God", "G o d"))

    found = king_james_clauses(Tokenizer())
    assert found and not any("God" in clause for clause in found)
