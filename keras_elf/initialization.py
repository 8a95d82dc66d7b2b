"""Models whose weights are about to be loaded need no random ones first."""

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
_LOCK = threading.RLock()


@contextlib.contextmanager
def weights_to_come():
    """Within the block, in this thread, Keras's random initializers give zeros.

    Drawing the 140M weights of ELF-B and its T5 takes longer than loading them. Use it only
    where every weight is loaded afterwards, or an error raised.
    """
    with _LOCK:
        thread, kept = threading.get_ident(), {cls: cls.__call__ for cls in _DRAWING}

        def zeros_here(draw):
            def initialize(self, shape, dtype=None, **kwargs):
                if threading.get_ident() != thread:
                    return draw(self, shape, dtype=dtype, **kwargs)
                return ops.zeros(shape, dtype=dtype)

            return initialize

        try:
            for cls, draw in kept.items():
                cls.__call__ = zeros_here(draw)
            yield
        finally:
            for cls, draw in kept.items():
                cls.__call__ = draw
