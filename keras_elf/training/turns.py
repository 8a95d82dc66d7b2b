"""Threads that look at a model's weights wait for one that exchanges them, and the reverse.

`evaluate` and saving put the averages in the place of the weights for a while, and on JAX Keras
takes the values out of the variables while it evaluates. A text that is written by another thread
meanwhile would be half of one and half of the other.

`fit` takes no turn, since it may run for days: on JAX write from its callbacks, and from no other
thread.
"""

import contextlib
import threading
import weakref

# How long those who only look let one who waits to exchange go first. Not for ever: threads that
# the one waited for has started itself would be waited for in vain.
POLITE_SECONDS = 1.0

_turns = weakref.WeakKeyDictionary()
_making = threading.Lock()


class Turns:
    """Any number of threads look, or one exchanges. A thread may do both, one within the other."""

    def __init__(self):
        self._condition = threading.Condition()
        self._looking = {}  # Depth of each thread.
        self._owner, self._depth, self._waiting = None, 0, 0

    @contextlib.contextmanager
    def looking(self):
        """Within the block no other thread exchanges."""
        me = threading.get_ident()
        with self._condition:
            if me != self._owner and me not in self._looking:
                self._condition.wait_for(lambda: not self._waiting, POLITE_SECONDS)
                self._condition.wait_for(lambda: self._owner is None)
            self._looking[me] = self._looking.get(me, 0) + 1
        try:
            yield
        finally:
            with self._condition:
                self._looking[me] -= 1
                if not self._looking[me]:
                    del self._looking[me]
                self._condition.notify_all()

    @contextlib.contextmanager
    def exchanging(self):
        """Within the block no other thread looks or exchanges."""
        me = threading.get_ident()
        with self._condition:
            if me != self._owner:
                # Who waits here within a look of its own does not look now: two of them would
                # wait for each other.
                own = self._looking.pop(me, 0)
                self._waiting += 1
                try:
                    self._condition.notify_all()
                    self._condition.wait_for(lambda: self._owner is None and not self._looking)
                    self._owner = me
                finally:
                    self._waiting -= 1
                    if own:
                        self._looking[me] = own
            self._depth += 1
        try:
            yield
        finally:
            with self._condition:
                self._depth -= 1
                if not self._depth:
                    self._owner = None
                self._condition.notify_all()


def turns(model):
    """The `Turns` of a model, made at the first call."""
    with _making:
        return _turns.setdefault(model, Turns())
