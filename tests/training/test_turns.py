"""Looking and exchanging: who waits for whom, and that nobody waits for ever."""

import concurrent.futures
import threading
import time

import pytest

from keras_elf.training import turns as module
from keras_elf.training.turns import Turns

pytestmark = pytest.mark.backend_free
SOON = 10.0


class Thread:
    """A thread that does what it is told, step by step."""

    def __init__(self, block):
        self.inside, self.leave = threading.Event(), threading.Event()
        self._pool = concurrent.futures.ThreadPoolExecutor(1)
        self.done = self._pool.submit(self._run, block)

    def _run(self, block):
        with block:
            self.inside.set()
            assert self.leave.wait(SOON)

    def end(self):
        self.leave.set()
        self.done.result(SOON)


def test_many_look_at_once_and_none_while_one_exchanges():
    turns = Turns()
    first, second = Thread(turns.looking()), Thread(turns.looking())
    assert first.inside.wait(SOON) and second.inside.wait(SOON)
    exchange = Thread(turns.exchanging())
    assert not exchange.inside.wait(0.1)
    first.end()
    assert not exchange.inside.wait(0.1)
    second.end()
    assert exchange.inside.wait(SOON)
    late, other = Thread(turns.looking()), Thread(turns.exchanging())
    assert not late.inside.wait(0.1) and not other.inside.wait(0.1)
    exchange.end()
    # Either may be first, and the other then waits for its end.
    for thread in (late, other):
        thread.leave.set()
    for thread in (late, other):
        thread.end()


def test_a_thread_may_do_both_within_each_other():
    turns = Turns()
    with turns.exchanging(), turns.looking(), turns.exchanging():
        waiting = Thread(turns.looking())
        assert not waiting.inside.wait(0.1)
    assert waiting.inside.wait(SOON)
    waiting.end()
    with turns.looking(), turns.exchanging(), turns.looking():
        pass
    Thread(turns.exchanging()).end()


def test_two_that_look_and_then_exchange_do_not_wait_for_each_other():
    turns, both = Turns(), threading.Barrier(2)

    def run():
        with turns.looking():
            both.wait(SOON)
            with turns.exchanging():
                time.sleep(0.01)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(run) for _ in range(2)]:
            future.result(SOON)


def test_who_waits_to_exchange_goes_first_but_not_at_any_price(monkeypatch):
    turns = Turns()
    first = Thread(turns.looking())
    assert first.inside.wait(SOON)
    exchange = Thread(turns.exchanging())
    time.sleep(0.05)
    polite = Thread(turns.looking())
    assert not polite.inside.wait(0.1)
    first.end()
    assert exchange.inside.wait(SOON) and not polite.inside.is_set()
    exchange.end()
    polite.end()
    # A look that has started a thread waits for it, and the exchange waits for that look.
    monkeypatch.setattr(module, "POLITE_SECONDS", 0.1)
    with turns.looking():
        exchange = Thread(turns.exchanging())
        time.sleep(0.05)
        Thread(turns.looking()).end()
    exchange.end()


def test_an_error_inside_ends_the_turn():
    turns = Turns()
    for block in (turns.looking, turns.exchanging):
        with pytest.raises(KeyError), block():
            raise KeyError
    Thread(turns.exchanging()).end()
    Thread(turns.looking()).end()


def test_each_object_has_turns_of_its_own():
    class Model:
        pass

    one, other = Model(), Model()
    assert module.turns(one) is module.turns(one) is not module.turns(other)
    kept = len(module._turns)
    del one
    assert len(module._turns) == kept - 1
