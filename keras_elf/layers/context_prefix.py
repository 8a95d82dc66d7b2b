"""Context tokens put before the text: time, guidance scale, mode and signals of one's own."""

import keras
from keras import ops

from keras_elf import checks
from keras_elf.layers.context_signals import ModeSignal, NumberSignal, ScaleSignal, TimeSignal
from keras_elf.layers.signal_sequence import (
    GIVEN,
    SignalSequence,
    deserialize_signals,
    serialize_signals,
)
from keras_elf.layers.timestep_embedding import TimestepEmbedding

# The published signals compute with weights that the prefix holds under these names: files,
# states of optimizers and numberings of adapters from before there were signals know them so.
_HELD_AS = {TimeSignal: "time", ScaleSignal: "guidance", ModeSignal: "mode"}


@keras.saving.register_keras_serializable(package="keras_elf")
class ContextPrefix(keras.layers.Layer):
    """Prepends context tokens to a sequence: what the network is told beside the text.

    Each of `signals` turns one value a row into tokens. ELF has three, time, guidance scale
    and mode, in the order `[time | guidance | mode | text]`; more may follow, such as a label
    or whatever else a user writes (see `ContextSignal`).

    Example:

    ```python
    x, prefix_length = keras_elf.layers.ContextPrefix(768)(x, t, guidance_scale=w, decode=gate)
    x = keras_elf.layers.ELFBlock(768, num_heads=12)(x, prefix_length=prefix_length)
    x = x[:, prefix_length:]

    context = [TimeSignal(), ScaleSignal(), ModeSignal(), LabelSignal(num_classes=10)]
    x, prefix_length = ContextPrefix(768, signals=context)(x, t, signals={"label": labels})
    ```

    Args:
        hidden_size: int. Width of the tokens.
        num_time_tokens: int. Defaults to `4`.
        num_guidance_tokens: int. `0` for a network that knows no guidance scale. Defaults
            to `4`.
        num_mode_tokens: int. Defaults to `4`.
        signals: list of `ContextSignal`, in the order of their tokens, in place of the
            published three; the three numbers above are then read from it. Defaults to
            `None`.

    Call arguments:
        x: tensor `(batch, length, hidden_size)`.
        t: float tensor `(batch,)` or scalar. Flow time in [0, 1].
        guidance_scale: float tensor `(batch,)` or scalar, or `None`, which leaves its tokens
            out. The self-conditioning guidance scale w.
        decode: float or bool tensor `(batch,)`, scalar or Python number. The gate.
            Defaults to `0.0`.
        signals: dict from the `key` of a signal to its values, `(batch,)` or scalar. A value
            that is missing or `None` is the signal's `empty`; where that is `None` too, the
            tokens are left out. Defaults to `None`, no extra values.

    A network need not tell times or modes by tokens: where no signal reads `t` or `decode`,
    they are not looked at.

    Returns:
        `(x, prefix_length)`: tensor `(batch, prefix_length + length, hidden_size)` and int.

    Raises:
        ValueError: for a guidance scale or an extra value that no signal reads, values that a
            signal refuses, or values of another number of rows than `x`.

    Source: ELF, arXiv 2605.10938 (network; mode tokens of shared-weight decoding).
    """

    def __init__(
        self,
        hidden_size,
        num_time_tokens=4,
        num_guidance_tokens=4,
        num_mode_tokens=4,
        signals=None,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.hidden_size = checks.integer("hidden_size", hidden_size, minimum=1)
        self.custom = signals is not None
        if signals is None:
            numbers = num_time_tokens, num_guidance_tokens, num_mode_tokens
            signals = _published(*numbers, dtype=self.dtype_policy)
        # A sequence that Keras does not look into: it would track and save the published
        # signals a second time, beside the weights held here.
        self.signals = SignalSequence(signals)
        self.num_time_tokens = self.signals.num_tokens("t")
        self.num_guidance_tokens = self.signals.num_tokens("guidance_scale")
        self.num_mode_tokens = self.signals.num_tokens("decode")
        for signal in self.signals:
            signal.join(self.hidden_size)
            if _held_as(signal) and isinstance(signal, NumberSignal):
                name = f"{_held_as(signal)}_embedding"
                embedding = TimestepEmbedding(hidden_size, dtype=signal.dtype_policy, name=name)
                setattr(self, name, embedding)
        # All others are sublayers like any, with their weights.
        self.own_signals = [signal for signal in self.signals if not _held_as(signal)]

    def build(
        self,
        x_shape,
        t_shape=None,
        guidance_scale_shape=None,
        decode_shape=None,
        signals_shape=None,
    ):
        if x_shape[-1] not in (None, self.hidden_size):
            raise ValueError(
                f"`x` must have width hidden_size={self.hidden_size}. Received: {x_shape}"
            )
        for signal in self.signals:
            if _held_as(signal):
                self._hold_weights(signal, _held_as(signal))
            signal.build((None,))
        self.built = True

    def _hold_weights(self, signal, name):
        tokens = self.add_weight(
            name=f"{name}_tokens",
            shape=(1, signal.num_tokens, self.hidden_size),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )
        setattr(self, f"{name}_tokens", tokens)
        if isinstance(signal, NumberSignal):
            embedding = getattr(self, f"{name}_embedding")
            embedding.build((None,))
            signal.hold(tokens, embedding)
        else:
            signal.hold(tokens)

    def __call__(self, x, t, guidance_scale=None, decode=0.0, signals=None, **kwargs):
        # A layer may only return tensors, so the number is added around Keras's own call.
        # `kwargs` holds what a functional model hands to each of its layers: `training`.
        # Python numbers may only go by keyword.
        self.signals.check_given(guidance_scale, signals)
        # Here values can still be seen; Keras makes tensors of them.
        signals = {k: self.signals[k].rows(v) for k, v in (signals or {}).items() if v is not None}
        x = super().__call__(
            x, t=t, guidance_scale=guidance_scale, decode=decode, signals=signals or None, **kwargs
        )
        return x, self.prefix_length(guidance_scale is not None, signals)

    def prefix_length(self, with_guidance=True, signals=None):
        """Number of tokens put before the text.

        Args:
            with_guidance: bool. Whether a guidance scale is given. Defaults to `True`.
            signals: collection of the names of the extra values that are given; `None` counts
                the tokens of all. Defaults to `None`.
        """

        def is_there(signal):
            if signal.key == "guidance_scale":
                return with_guidance
            given = signal.key in GIVEN or signals is None or signal.key in signals
            return given or signal.empty is not None

        return sum(signal.num_tokens for signal in self.signals if is_there(signal))

    def call(self, x, t, guidance_scale=None, decode=0.0, signals=None):
        parts = self._parts(t, guidance_scale, decode, signals, x.shape[0])
        # Parts of one row serve every row of `x`.
        batch = ops.shape(x)[0]
        parts = [_repeated(ops.cast(part, self.compute_dtype), batch) for part in parts]
        return ops.concatenate([*parts, ops.cast(x, self.compute_dtype)], axis=1)

    def _parts(self, t, guidance_scale, decode, signals, batch):
        self.signals.check_given(guidance_scale, signals)
        values = {**(signals or {}), "t": t, "guidance_scale": guidance_scale, "decode": decode}
        parts = []
        for signal in self.signals:
            value = values.get(signal.key)
            value = signal.empty if value is None else value
            if value is not None:
                parts.append(signal(value))
                self._check_tokens(signal, parts[-1].shape, batch)
        return parts

    def _check_tokens(self, signal, shape, batch):
        if len(shape) != 3 or tuple(shape[1:]) != (signal.num_tokens, self.hidden_size):
            raise ValueError(
                f"{type(signal).__name__} must make tokens (rows, num_tokens={signal.num_tokens}, "
                f"hidden_size={self.hidden_size}). Received shape: {tuple(shape)}"
            )
        if None not in (shape[0], batch) and shape[0] not in (1, batch):
            raise ValueError(
                f"`{signal.key}` must be a scalar or have a value for each row of `x`. Received "
                f"{shape[0]} values for {batch} rows"
            )

    def compute_output_spec(self, x, t, guidance_scale=None, decode=0.0, signals=None):
        self.signals.check_given(guidance_scale, signals)
        if len(x.shape) != 3:
            raise ValueError(f"`x` must be (batch, length, width). Received shape: {x.shape}")
        length = x.shape[1]
        if length is not None:
            length += self.prefix_length(guidance_scale is not None, signals or ())
        return keras.KerasTensor((x.shape[0], length, self.hidden_size), dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_time_tokens": self.num_time_tokens,
            "num_guidance_tokens": self.num_guidance_tokens,
            "num_mode_tokens": self.num_mode_tokens,
            "signals": serialize_signals(self.signals) if self.custom else None,
        }

    @classmethod
    def from_config(cls, config):
        return super().from_config(
            {**config, "signals": deserialize_signals(config.get("signals"))}
        )


def _held_as(signal):
    """Under which name the prefix holds a signal's weights, `None` if the signal does."""
    return _HELD_AS.get(type(signal)) if signal.key == type(signal).key else None


def _published(num_time_tokens, num_guidance_tokens, num_mode_tokens, dtype):
    signals = [
        TimeSignal(checks.integer("num_time_tokens", num_time_tokens, minimum=1), dtype=dtype)
    ]
    if checks.integer("num_guidance_tokens", num_guidance_tokens, minimum=0):
        signals.append(ScaleSignal(num_guidance_tokens, dtype=dtype))
    number = checks.integer("num_mode_tokens", num_mode_tokens, minimum=1)
    return [*signals, ModeSignal(number, dtype=dtype)]


def _repeated(part, rows):
    return part if part.shape[0] != 1 else ops.broadcast_to(part, (rows, *part.shape[1:]))
