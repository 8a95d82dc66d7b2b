"""A limit on the weights that the classes of a preset may make."""

import collections
import contextlib
import math
import threading

import keras

_LOCK = threading.Lock()
# The budgets that each thread is in, and the method as Keras has it.
_BUDGETS, _KEPT = collections.defaultdict(list), []


@contextlib.contextmanager
def weight_budget(path, limit, held):
    """Within the block, in this thread, layers make `limit` weights at most.

    A class of a user's own need not tell its size from its arguments. So each weight is
    counted when a layer asks for it, before it is allocated. Several threads may be in such
    blocks at once, and one may wait for another.

    Args:
        path: str. The preset, for the message.
        limit: int. Number of weights.
        held: str. What the limit comes from, for the message.

    Raises:
        ValueError: from within the block, when the limit is passed.
    """
    thread, budget = threading.get_ident(), _Budget(path, limit, held)
    with _LOCK:
        if not _BUDGETS:
            _KEPT[:] = [keras.layers.Layer.add_weight]
            keras.layers.Layer.add_weight = _counted(*_KEPT)
        _BUDGETS[thread].append(budget)
    try:
        yield
    finally:
        with _LOCK:
            _BUDGETS[thread].remove(budget)
            if not _BUDGETS[thread]:
                del _BUDGETS[thread]
            if not _BUDGETS:
                keras.layers.Layer.add_weight = _KEPT[0]


class _Budget:
    def __init__(self, path, limit, held):
        self.path, self.limit, self.held, self.made = path, limit, held, 0

    def count(self, shape):
        # TensorFlow's layers may give a TensorShape.
        self.made += math.prod(shape if hasattr(shape, "__iter__") else (shape,))
        if self.made > self.limit:
            raise ValueError(
                f"The preset {self.path!r} is refused: its configuration asks for more than "
                f"{self.limit:,} parameters, but {self.held}"
            )


def _counted(add_weight):
    def counted(self, shape=None, *args, **kwargs):
        if shape is not None:
            for budget in _BUDGETS.get(threading.get_ident(), ()):
                budget.count(shape)
        return add_weight(self, shape, *args, **kwargs)

    return counted
