"""Measuring in turns."""

import statistics

import pytest

from benchmarks import timing

pytestmark = pytest.mark.backend_free


class Scripted:
    """A measure that gives the numbers of a list and keeps who was asked."""

    def __init__(self, name, seconds, asked):
        self.name, self.seconds, self.asked = name, iter(seconds), asked

    def __call__(self):
        self.asked.append(self.name)
        return next(self.seconds)


def compare(**scripts):
    asked = []
    measures = {name: Scripted(name, values, asked) for name, values in scripts.items()}
    repeats = len(next(iter(scripts.values()))) - 2
    return timing.compare(measures, repeats), asked


def test_ratios_are_taken_within_a_round():
    """The machine is ten times slower in one round: the ratio does not notice."""
    found, _ = compare(a=[9, 9, 1, 10, 1, 1], b=[9, 9, 2, 20, 2, 2])
    assert found["b"]["ratio"] == {"median": 2, "q1": 2, "q3": 2, "min": 2, "max": 2, "n": 4}
    assert found["a"]["ratio"]["median"] == 1


def test_the_ratio_is_the_median_of_ratios_and_not_a_ratio_of_medians():
    found, _ = compare(a=[0, 0, 1, 2, 9], b=[0, 0, 3, 2, 9])
    assert found["b"]["ratio"]["median"] == 1
    assert found["b"]["time_s"]["median"] / found["a"]["time_s"]["median"] == 1.5


def test_the_first_call_and_the_warm_up_count_apart():
    found, _ = compare(a=[50, 40, 1, 2, 3])
    assert found["a"]["first_s"] == 50
    assert found["a"]["time_s"]["max"] == 3


def test_every_second_round_goes_the_other_way():
    _, asked = compare(a=[1] * 4, b=[1] * 4)
    assert asked == ["a", "b", "a", "b", "a", "b", "b", "a"]


def test_spread_of_one_and_of_many():
    one = timing.spread([3.0])
    assert (one["median"], one["q1"], one["q3"], one["n"]) == (3.0, 3.0, 3.0, 1)
    many = timing.spread([5, 1, 4, 2, 3])
    assert (many["q1"], many["median"], many["q3"]) == (2, 3, 4)
    assert statistics.median([5, 1, 4, 2, 3]) == many["median"]


def test_a_stopwatch_calls_short_functions_more_often(monkeypatch):
    clock = iter(range(0, 1000))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock) * 1e-3)
    monkeypatch.setattr(timing, "synchronise", lambda result: None)
    calls = []
    watch = timing.Stopwatch(lambda: calls.append(1))
    watch.settle()
    assert watch.calls == 20  # A call took a millisecond of the 20 that are asked for.
    assert watch() == pytest.approx(1e-3 / 20)
    assert len(calls) == 21
