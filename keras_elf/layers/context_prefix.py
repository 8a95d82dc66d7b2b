"""Context tokens put before the text: time, guidance scale, mode."""

import keras
from keras import ops

from keras_elf import checks
from keras_elf.layers.timestep_embedding import TimestepEmbedding


@keras.saving.register_keras_serializable(package="keras_elf")
class ContextPrefix(keras.layers.Layer):
    """Prepends time, guidance-scale and mode tokens to a sequence.

    Order: `[time | guidance | mode | text]`. Time and guidance tokens are learned tokens
    plus the embedding of the number; mode tokens are learned tokens times a gate, 1 in
    decode mode and 0 in denoise mode, so the slots stay in both modes. The guidance tokens
    are left out where no scale is given.

    Example:

    ```python
    x, prefix_length = keras_elf.layers.ContextPrefix(768)(x, t, guidance_scale=w, decode=gate)
    x = keras_elf.layers.ELFBlock(768, num_heads=12)(x, prefix_length=prefix_length)
    x = x[:, prefix_length:]
    ```

    Args:
        hidden_size: int. Width of the tokens.
        num_time_tokens: int. Defaults to `4`.
        num_guidance_tokens: int. `0` for a network that knows no guidance scale. Defaults
            to `4`.
        num_mode_tokens: int. Defaults to `4`.

    Call arguments:
        x: tensor `(batch, length, hidden_size)`.
        t: float tensor `(batch,)` or scalar. Flow time in [0, 1].
        guidance_scale: float tensor `(batch,)` or scalar, or `None`. The self-conditioning
            guidance scale w.
        decode: float or bool tensor `(batch,)`, scalar or Python number. The gate.
            Defaults to `0.0`.

    Returns:
        `(x, prefix_length)`: tensor `(batch, prefix_length + length, hidden_size)` and int.

    Raises:
        ValueError: if a guidance scale is given to a layer without guidance tokens.

    Source: ELF, arXiv 2605.10938 (network; mode tokens of shared-weight decoding).
    """

    def __init__(
        self,
        hidden_size,
        num_time_tokens=4,
        num_guidance_tokens=4,
        num_mode_tokens=4,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.hidden_size = checks.integer("hidden_size", hidden_size, minimum=1)
        self.num_time_tokens = checks.integer("num_time_tokens", num_time_tokens, minimum=1)
        self.num_guidance_tokens = checks.integer(
            "num_guidance_tokens", num_guidance_tokens, minimum=0
        )
        self.num_mode_tokens = checks.integer("num_mode_tokens", num_mode_tokens, minimum=1)
        self.time_embedding = TimestepEmbedding(
            hidden_size, dtype=self.dtype_policy, name="time_embedding"
        )
        self.guidance_embedding = None
        if num_guidance_tokens:
            self.guidance_embedding = TimestepEmbedding(
                hidden_size, dtype=self.dtype_policy, name="guidance_embedding"
            )

    def build(self, x_shape, t_shape=None, guidance_scale_shape=None, decode_shape=None):
        if x_shape[-1] not in (None, self.hidden_size):
            raise ValueError(
                f"`x` must have width hidden_size={self.hidden_size}. Received: {x_shape}"
            )
        self.time_tokens = self._add_tokens("time_tokens", self.num_time_tokens)
        self.time_embedding.build((None,))
        if self.num_guidance_tokens:
            self.guidance_tokens = self._add_tokens("guidance_tokens", self.num_guidance_tokens)
            self.guidance_embedding.build((None,))
        self.mode_tokens = self._add_tokens("mode_tokens", self.num_mode_tokens)
        self.built = True

    def _add_tokens(self, name, count):
        return self.add_weight(
            name=name,
            shape=(1, count, self.hidden_size),
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )

    def __call__(self, x, t, guidance_scale=None, decode=0.0, **kwargs):
        # A layer may only return tensors, so the number is added around Keras's own call.
        # `kwargs` holds what a functional model hands to each of its layers: `training`.
        # Python numbers may only go by keyword.
        x = super().__call__(x, t=t, guidance_scale=guidance_scale, decode=decode, **kwargs)
        return x, self.prefix_length(guidance_scale is not None)

    def prefix_length(self, with_guidance=True):
        """Number of tokens put before the text, with or without a guidance scale."""
        guidance = self.num_guidance_tokens if with_guidance else 0
        return self.num_time_tokens + guidance + self.num_mode_tokens

    def call(self, x, t, guidance_scale=None, decode=0.0):
        return self.prepend(x, self._parts(t, guidance_scale, decode))

    def tokens(self, t, guidance_scale=None, decode=0.0):
        """The context tokens alone, to be prepared before the sequences they are put before.

        Args:
            t, guidance_scale, decode: as in the call; scalars give one row.

        Returns:
            Tensor `(rows, prefix_length, hidden_size)` in the compute dtype, which `prepend`
            takes.
        """
        parts = self._parts(t, guidance_scale, decode)
        rows = next((ops.shape(part)[0] for part in parts if part.shape[0] != 1), 1)
        return ops.concatenate([_repeated(part, rows) for part in parts], axis=1)

    def prepend(self, x, parts):
        """`[*parts, x]` along the sequence; parts of one row serve every row of `x`.

        Args:
            x: tensor `(batch, length, hidden_size)`.
            parts: list of tensors `(batch or 1, tokens, hidden_size)`.
        """
        batch = ops.shape(x)[0]
        parts = [_repeated(ops.cast(part, self.compute_dtype), batch) for part in parts]
        return ops.concatenate([*parts, ops.cast(x, self.compute_dtype)], axis=1)

    def _parts(self, t, guidance_scale, decode):
        parts = [self._number_tokens(t, self.time_tokens, self.time_embedding)]
        if guidance_scale is not None:
            self._require_guidance()
            parts.append(
                self._number_tokens(guidance_scale, self.guidance_tokens, self.guidance_embedding)
            )
        gate = ops.cast(_rows(decode), self.compute_dtype)[:, None, None]
        return [*parts, gate * ops.cast(self.mode_tokens, self.compute_dtype)]

    def _number_tokens(self, value, tokens, embedding):
        embedded = embedding(_rows(value))
        return ops.cast(tokens, embedded.dtype) + embedded[:, None, :]

    def _require_guidance(self):
        if not self.num_guidance_tokens:
            raise ValueError(
                "`guidance_scale` was given, but this ContextPrefix has num_guidance_tokens=0. "
                "Pass guidance_scale=None or build the layer with guidance tokens."
            )

    def compute_output_spec(self, x, t, guidance_scale=None, decode=0.0):
        if guidance_scale is not None:
            self._require_guidance()
        if len(x.shape) != 3:
            raise ValueError(f"`x` must be (batch, length, width). Received shape: {x.shape}")
        length = x.shape[1]
        if length is not None:
            length += self.prefix_length(guidance_scale is not None)
        return keras.KerasTensor((x.shape[0], length, self.hidden_size), dtype=self.compute_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_time_tokens": self.num_time_tokens,
            "num_guidance_tokens": self.num_guidance_tokens,
            "num_mode_tokens": self.num_mode_tokens,
        }


def _rows(value):
    """`value` as a float32 tensor `(rows,)`; a scalar is one row, embedded once for all."""
    value = ops.cast(value, "float32")
    return value if len(value.shape) else ops.reshape(value, (1,))


def _repeated(part, rows):
    return part if part.shape[0] != 1 else ops.broadcast_to(part, (rows, *part.shape[1:]))
