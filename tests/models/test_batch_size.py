"""How many texts are sampled at once where nobody says."""

import pytest

from keras_elf.models import batch_size
from tests.models import small


@pytest.fixture(scope="module")
def network():
    return small.backbone()


def rows(network, monkeypatch, free, most=32, length=12, conditioned=False):
    monkeypatch.setattr(batch_size, "free_memory", lambda: (free, most))
    return batch_size.fitting_rows(network, length, conditioned)


def test_between_one_and_the_most(network, monkeypatch):
    assert rows(network, monkeypatch, 2**40) == 32
    assert rows(network, monkeypatch, 2**40, most=256) == 256
    assert rows(network, monkeypatch, 10) == 1
    assert rows(network, monkeypatch, None) == 32


def test_follows_memory_length_and_guidance(network, monkeypatch):
    free = 4 * 10 * batch_size.row_bytes(network, 12, conditioned=False)
    assert rows(network, monkeypatch, free) == 8
    assert rows(network, monkeypatch, 2 * free) == 16
    assert rows(network, monkeypatch, free, conditioned=True) == 4
    # Scores of attention grow with the square of the length.
    assert rows(network, monkeypatch, free, length=100) < 2


def test_a_little_more_or_less_memory_changes_nothing(network, monkeypatch):
    free = 4 * 10 * batch_size.row_bytes(network, 12, conditioned=False)
    found = {rows(network, monkeypatch, free * (1 + k / 100)) for k in range(-19, 59)}
    assert found == {8}


def test_this_machine_has_some():
    free, most = batch_size.free_memory()
    assert most >= 32 and (free is None or free > 2**20)


def test_a_container_s_limit_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_size, "CONTROL_GROUP", tmp_path)
    assert batch_size._available_to_container() is None
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert batch_size._available_to_container() is None
    (tmp_path / "memory.max").write_text("5000\n")
    assert batch_size._available_to_container() == 4000
