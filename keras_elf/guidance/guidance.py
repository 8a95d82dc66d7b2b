"""What every guidance rule is: which further prediction it needs, how strong it is when."""

from typing import Any, NamedTuple

import numpy as np
from keras import ops

from keras_elf import checks
from keras_elf.configurable import Configurable
from keras_elf.flow.path import align

# Far past any use, and far from where float32 arithmetic turns into NaN.
MAX_SCALE = 1e4


class DenoiserInputs(NamedTuple):
    """What the network is asked with, for the rows of a batch.

    Attributes:
        z: float32 `(batch, length, width)`. Noisy latents, the condition in place.
        self_condition: like `z`. The last prediction, the condition in place.
        condition: like `z`, the clean latents of the condition; `None` without one.
        is_cond: bool `(batch, length)`, or `None`.
        signals: dict of `(batch,)` tensors, the further values of `Denoiser.signals`.
        empty_signals: dict of the values that mean "none".
    """

    z: Any
    self_condition: Any
    condition: Any = None
    is_cond: Any = None
    signals: dict = {}
    empty_signals: dict = {}


class Guidance(Configurable):
    """Base of the guidance rules: `without + scale (with - without)`.

    A subclass says what the further prediction, the one `without`, is asked with. All
    predictions of a step run as one batch. Rules may be listed: each one doubles the batch
    while it acts.

    A rule of one's own overrides `without`, and `combine` where it is not an extrapolation:

    ```python
    @keras.saving.register_keras_serializable(package="my_package")
    class AgainstNoise(keras_elf.guidance.Guidance):
        def without(self, inputs):
            return inputs._replace(self_condition=0.5 * inputs.self_condition)
    ```

    Args:
        scale: the strength; `1.0` is none. A number; an array with a number a row; or a
            function of t, written with `keras.ops` and registered with Keras where the model
            is saved. Defaults to `1.0`.
        interval: `(low, high)` in flow time. Outside of it the rule does not act and asks for
            nothing. Defaults to `(0.0, 1.0)`, always.
        rescale: float in [0, 1]. How far the spread of the result is brought back to that of
            the prediction without guidance. Defaults to `0.0`.

    Raises:
        ValueError: for a scale that is not finite or above 10,000, an empty interval, or a
            `rescale` outside [0, 1].

    Source: classifier-free guidance, arXiv 2207.12598; in an interval, arXiv 2404.07724; with
    rescaling, arXiv 2305.08891.
    """

    def __init__(self, scale=1.0, interval=(0.0, 1.0), rescale=0.0):
        self.scale = checked_scale("scale", scale)
        self.interval = _checked_interval(interval)
        self.rescale = checks.probability("rescale", rescale)

    def needs_prediction(self, network, inputs):
        """Whether this rule asks `network` for a further prediction at all."""
        return True

    def informs(self, network):
        """Whether `network` itself is told the scale, as its `guidance_scale`."""
        return False

    def without(self, inputs):
        """The `DenoiserInputs` of the further prediction, made of those of the first."""
        raise NotImplementedError(f"{type(self).__name__} must implement `without`.")

    def combine(self, guided, unguided, scale):
        """Clean latents from the predictions with and without what guides.

        Args:
            guided, unguided: float32 tensors `(batch, length, width)`.
            scale: float32 tensor that broadcasts against them.
        """
        return unguided + scale * (guided - unguided)

    def acts(self, low, high):
        """Whether the rule can do anything at a time in `[low, high]`, floats."""
        if high < self.interval[0] or low > self.interval[1]:
            return False
        return callable(self.scale) or bool(np.any(np.asarray(self.scale) != 1.0))

    def check_rows(self, total):
        """Raise `ValueError` unless a scale a row has `total` numbers."""
        if not callable(self.scale) and np.ndim(self.scale) and len(self.scale) != total:
            raise ValueError(
                f"`scale` of {type(self).__name__} has {len(self.scale)} numbers, one a text, but "
                f"there are {total} texts"
            )

    def rows(self, samples):
        """The scale of these samples: a number, `(rows,)` or `None` for a function of t."""
        if callable(self.scale):
            return None
        scale = np.asarray(self.scale, "float32")
        if scale.ndim and max(samples) >= len(scale):
            raise ValueError(
                f"`scale` has {len(scale)} numbers, one a row, but there are more rows: "
                f"{max(samples) + 1}"
            )
        return scale[np.asarray(samples)] if scale.ndim else scale

    def scale_at(self, t, given):
        """The scale at time `t`, 1 outside the interval.

        Args:
            t: float32 scalar tensor.
            given: tensor of what `rows` returned, or `None`.
        """
        scale = ops.cast(self.scale(t) if given is None else given, "float32")
        if self.interval == (0.0, 1.0):
            return scale
        inside = ops.logical_and(t >= self.interval[0], t <= self.interval[1])
        return ops.where(inside, scale, 1.0)

    def apply(self, guided, unguided, t, given, is_cond=None):
        """`combine` at time `t`, then rescaled over the positions that are no condition."""
        scale = align(self.scale_at(t, given), guided)
        result = self.combine(guided, unguided, scale)
        if not self.rescale:
            return result
        free = ops.ones_like(guided[..., :1])
        if is_cond is not None:
            free = free * (1.0 - align(is_cond, guided))
        matched = result * _spread(guided, free) / ops.maximum(_spread(result, free), 1e-6)
        return self.rescale * matched + (1.0 - self.rescale) * result


def checked_scale(name, scale):
    """A scale that guidance can use; raises `ValueError` that names `name`."""
    if callable(scale):
        return scale
    if isinstance(scale, (list, tuple, np.ndarray)):
        rows = np.asarray(scale, "float64")
        if rows.ndim != 1 or not len(rows) or not np.isfinite(rows).all():
            raise ValueError(f"`{name}` must be finite numbers, one a row. Received: {scale!r}")
        return [checks.number(name, float(value), -MAX_SCALE, MAX_SCALE) for value in rows]
    return checks.number(name, scale, -MAX_SCALE, MAX_SCALE)


def _checked_interval(interval):
    if not isinstance(interval, (list, tuple)) or len(interval) != 2:
        raise ValueError(f"`interval` must be (low, high) in [0, 1]. Received: {interval!r}")
    low, high = (checks.probability("interval", value) for value in interval)
    if low > high:
        raise ValueError(f"`interval` must have low <= high. Received: {interval!r}")
    return low, high


def _spread(x, free):
    """Standard deviation of each row over its free positions: `(batch, 1, 1)`."""
    count = ops.maximum(ops.sum(free, axis=(1, 2), keepdims=True) * x.shape[-1], 1.0)
    mean = ops.sum(x * free, axis=(1, 2), keepdims=True) / count
    square = ops.sum(ops.square(x - mean) * free, axis=(1, 2), keepdims=True)
    return ops.sqrt(square / count)
