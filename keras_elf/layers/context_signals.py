"""The context signals of ELF, time, scale and mode, and labels for text of a class."""

import keras
import numpy as np
from keras import ops

from keras_elf import checks
from keras_elf.layers.context_signal import ContextSignal
from keras_elf.layers.timestep_embedding import TimestepEmbedding


@keras.saving.register_keras_serializable(package="keras_elf")
class NumberSignal(ContextSignal):
    """Learned tokens plus the embedding of a real number.

    Args:
        key: str. Name of the number.
        empty: number that stands for no value; `None` leaves the tokens out then. Defaults
            to `None`.
        num_tokens, hidden_size, dtype: see `ContextSignal`.

    Call arguments:
        value: float tensor `(rows,)` or scalar.

    Returns:
        Tensor `(rows, num_tokens, width)` in the compute dtype.
    """

    def __init__(self, num_tokens=4, hidden_size=None, key=None, empty=None, **kwargs):
        super().__init__(num_tokens, hidden_size, key, **kwargs)
        self.empty = None if empty is None else checks.number("empty", empty)
        self.tokens = self.embedding = None

    def hold(self, tokens, embedding):
        """Compute with weights that another layer owns, in place of one's own.

        Args:
            tokens: variable `(1, num_tokens, width)`.
            embedding: `TimestepEmbedding` of this width.
        """
        self.tokens, self.embedding = tokens, embedding

    def build(self, value_shape=None):
        if self.tokens is None:
            self.tokens = _learned_tokens(self)
            self.embedding = TimestepEmbedding(
                self.width, dtype=self.dtype_policy, name="embedding"
            )
            self.embedding.build((None,))
        self.built = True

    def call(self, value):
        embedded = self.embedding(value)
        return ops.cast(self.tokens, embedded.dtype) + embedded[:, None, :]

    @classmethod
    def parameter_count(cls, width, num_tokens=4, **_):
        return num_tokens * width + (256 + 1 + width + 1) * width

    def get_config(self):
        return {**super().get_config(), "empty": self.empty}


@keras.saving.register_keras_serializable(package="keras_elf")
class TimeSignal(NumberSignal):
    """The flow time as tokens: learned tokens plus the embedding of t in [0, 1].

    Args: see `ContextSignal`.

    Source: ELF, arXiv 2605.10938 (network).
    """

    key = "t"


@keras.saving.register_keras_serializable(package="keras_elf")
class ScaleSignal(NumberSignal):
    """The self-conditioning guidance scale w as tokens, left out where no scale is given.

    Args: see `ContextSignal`.

    Source: ELF, arXiv 2605.10938 (network).
    """

    key = "guidance_scale"


@keras.saving.register_keras_serializable(package="keras_elf")
class ModeSignal(ContextSignal):
    """Learned tokens times a gate, 1 in decode mode and 0 in denoise mode.

    The slots stay in both modes.

    Args: see `ContextSignal`.

    Call arguments:
        value: float or bool tensor `(rows,)`, scalar or Python number. The gate.

    Source: ELF, arXiv 2605.10938 (mode tokens of shared-weight decoding).
    """

    key = "decode"
    empty = 0.0

    def __init__(self, num_tokens=4, hidden_size=None, key=None, **kwargs):
        super().__init__(num_tokens, hidden_size, key, **kwargs)
        self.tokens = None

    def hold(self, tokens):
        """Compute with tokens `(1, num_tokens, width)` that another layer owns."""
        self.tokens = tokens

    def build(self, value_shape=None):
        if self.tokens is None:
            self.tokens = _learned_tokens(self)
        self.built = True

    def call(self, value):
        gate = ops.cast(value, self.compute_dtype)[:, None, None]
        return gate * ops.cast(self.tokens, self.compute_dtype)


@keras.saving.register_keras_serializable(package="keras_elf")
class LabelSignal(ContextSignal):
    """Learned tokens a class, for text of a class: a topic, an author, a style.

    One more set of tokens stands for no label, `empty`, the id `num_classes`. A network that
    sees it in some rows of training can be guided towards a label.

    Example:

    ```python
    context = [TimeSignal(), ScaleSignal(), ModeSignal(), LabelSignal(num_classes=10)]
    backbone = keras_elf.ELFBackbone(..., context_signals=context)
    h = backbone.hidden_states(z, t, signals={"label": [3, 10]})  # the second row has none
    ```

    Args:
        num_classes: int. Labels are 0 to `num_classes - 1`.
        num_tokens: int. Tokens a label. Defaults to `4`.
        hidden_size: int or `None`, see `ContextSignal`. Defaults to `None`.
        key: str. Name of the value. Defaults to `"label"`.
        dtype: see `ContextSignal`.

    Call arguments:
        value: int tensor, array or list `(rows,)`, or scalar: labels in [0, num_classes].

    Returns:
        Tensor `(rows, num_tokens, width)`. The tokens of labels out of range that could not
        be seen before are NaN, on every backend.

    Raises:
        ValueError: for labels that are not whole numbers or, where they can be seen (see
            `ContextSignal.check`), out of range.

    Source: class token and its null class, classifier-free guidance, arXiv 2207.12598.
    """

    key = "label"
    value_dtype = "int32"

    def __init__(self, num_classes, num_tokens=4, hidden_size=None, key=None, **kwargs):
        super().__init__(num_tokens, hidden_size, key, **kwargs)
        self.num_classes = checks.integer("num_classes", num_classes, minimum=1)

    @property
    def empty(self):
        """The id that stands for no label."""
        return self.num_classes

    def check(self, values):
        wrong = values[(values < 0) | (values > self.num_classes)]
        if wrong.size:
            raise ValueError(
                f"`{self.key}` must be in [0, {self.num_classes}], {self.num_classes} for no label "
                f"(num_classes={self.num_classes}). Received: {np.unique(wrong)[:5].tolist()}"
            )

    def build(self, value_shape=None):
        self.tokens = self.add_weight(
            name="tokens",
            shape=(self.num_classes + 1, self.num_tokens, self.width),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )
        self.built = True

    def call(self, value):
        # Backends do different things out of range, some of them silently.
        known = ops.logical_and(value >= 0, value <= self.num_classes)
        tokens = ops.cast(self.tokens, self.compute_dtype)
        tokens = ops.take(tokens, ops.where(known, value, self.num_classes), axis=0)
        return ops.where(known[:, None, None], tokens, ops.cast(float("nan"), tokens.dtype))

    @classmethod
    def parameter_count(cls, width, num_classes, num_tokens=4, **_):
        return (num_classes + 1) * num_tokens * width

    def get_config(self):
        return {**super().get_config(), "num_classes": self.num_classes}


def _learned_tokens(signal):
    return signal.add_weight(
        name="tokens",
        shape=(1, signal.num_tokens, signal.width),
        initializer=keras.initializers.RandomNormal(stddev=0.02),
    )
