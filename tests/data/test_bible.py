import importlib.resources

import pytest

from keras_elf.data import king_james_verses

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
