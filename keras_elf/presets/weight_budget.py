"""A limit on the weights that the classes of a preset may make."""

import contextlib
import math
import threading

import keras

_LOCK = threading.RLock()


@contextlib.contextmanager
def weight_budget(path, limit, held):
    """Within the block, in this thread, layers make `limit` weights at most.

    A class of a user's own need not tell its size from its arguments. So each weight is
    counted when a layer asks for it, before it is allocated.

    Args:
        path: str. The preset, for the message.
        limit: int. Number of weights.
        held: str. What the limit comes from, for the message.

    Raises:
        ValueError: from within the block, when the limit is passed.
    """
    layer, thread, made = keras.layers.Layer, threading.get_ident(), 0
    with _LOCK:
        kept = layer.add_weight

        def counted(self, shape=None, *args, **kwargs):
            nonlocal made
            if threading.get_ident() == thread and shape is not None:
                made += math.prod(shape if isinstance(shape, (tuple, list)) else (shape,))
                if made > limit:
                    raise ValueError(
                        f"The preset {path!r} is refused: its configuration asks for more than "
                        f"{limit:,} parameters, but {held}"
                    )
            return kept(self, shape, *args, **kwargs)

        layer.add_weight = counted
        try:
            yield
        finally:
            layer.add_weight = kept
