"""Models whose weights are about to be loaded need no random ones first."""

import collections
import contextlib
import threading

import keras
from keras import ops

# The classes that draw; the others derive from them or are cheap.
_DRAWING = (
    keras.initializers.RandomNormal,
    keras.initializers.RandomUniform,
    keras.initializers.TruncatedNormal,
    keras.initializers.VarianceScaling,
)
_LOCK = threading.Lock()
# How many blocks each thread is in, and what the classes drew with before the first of them.
_BLOCKS, _KEPT = collections.Counter(), {}


@contextlib.contextmanager
def weights_to_come():
    """Within the block, in this thread, Keras's random initializers give zeros.

    Drawing the 140M weights of ELF-B and its T5 takes longer than loading them. Use it only
    where every weight is loaded afterwards, or an error raised. Several threads may be in
    such blocks at once, and one may wait for another.
    """
    thread = threading.get_ident()
    with _LOCK:
        if not _BLOCKS:
            for cls in _DRAWING:
                _KEPT[cls] = cls.__call__
                cls.__call__ = _zeros_or(cls.__call__)
        _BLOCKS[thread] += 1
    try:
        yield
    finally:
        with _LOCK:
            _BLOCKS[thread] -= 1
            if not _BLOCKS[thread]:
                del _BLOCKS[thread]
            if not _BLOCKS:
                for cls, draw in _KEPT.items():
                    cls.__call__ = draw


def _zeros_or(draw):
    def initialize(self, shape, dtype=None, **kwargs):
        if threading.get_ident() not in _BLOCKS:
            return draw(self, shape, dtype=dtype, **kwargs)
        return ops.zeros(shape, dtype=dtype)

    return initialize
