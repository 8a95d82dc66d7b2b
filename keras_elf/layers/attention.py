"""ELF's self-attention: fused projection, per-head RMS norm, rotary, optional mask."""

import keras
from keras import ops

from keras_elf import checks
from keras_elf.accelerators import has_accelerator
from keras_elf.layers.rotary import RotaryEmbedding

NORM_EPSILON = 1e-6
FUSED_HEAD_MULTIPLE = 8


@keras.saving.register_keras_serializable(package="keras_elf")
class ELFAttention(keras.layers.Layer):
    """Bidirectional multi-head self-attention.

    One fused Dense gives `[q | k | v]`; q and k are RMS-normalised over the head and
    rotated; softmax runs in float32; a last Dense mixes the heads. All kernels are 2-D, so
    that Muon, LoRA and int8 quantisation see ordinary Dense layers.

    Args:
        hidden_size: int. Width of the input and the output.
        num_heads: int. Must divide `hidden_size` into heads of even size.
        dropout: float in [0, 1]. Dropout after the output projection. Defaults to `0.0`.
        attention_dropout: float in [0, 1]. Dropout on attention weights. Defaults to `0.0`.

    Call arguments:
        x: tensor `(batch, prefix_length + length, hidden_size)`.
        prefix_length: int. Leading context tokens: not rotated, visible to all.
        attention_mask: bool or 0/1 tensor over the *text* tokens, or `None` (all see all).
            `(batch, length)`: which keys may be seen; `(batch, length, length)`: which
            keys each query may see.

    Raises:
        ValueError: if the heads do not divide the width or the head size is odd.

    Source: ELF, arXiv 2605.10938 (network).
    """

    def __init__(self, hidden_size, num_heads, dropout=0.0, attention_dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = checks.integer("hidden_size", hidden_size, minimum=1)
        self.num_heads = checks.integer("num_heads", num_heads, minimum=1)
        self.dropout = checks.probability("dropout", dropout)
        self.attention_dropout = checks.probability("attention_dropout", attention_dropout)
        if hidden_size % num_heads:
            raise ValueError(
                "`num_heads` must divide `hidden_size`. "
                f"Received: num_heads={num_heads}, hidden_size={hidden_size}"
            )
        self.head_dim = hidden_size // num_heads
        if self.head_dim % 2:
            raise ValueError(
                "`hidden_size / num_heads` must be even for rotary pairs. Received: "
                f"{hidden_size} / {num_heads} = {self.head_dim}"
            )
        policy = self.dtype_policy
        self.qkv = keras.layers.Dense(3 * hidden_size, dtype=policy, name="qkv")
        # Both compute in float32 anyway: what they give is rounded once, before the products.
        exact = {"epsilon": NORM_EPSILON, "dtype": "float32"}
        self.q_norm = keras.layers.RMSNormalization(**exact, name="q_norm")
        self.k_norm = keras.layers.RMSNormalization(**exact, name="k_norm")
        self.rotary = RotaryEmbedding(dtype="float32", name="rotary")
        self.proj = keras.layers.Dense(hidden_size, dtype=policy, name="proj")
        self.proj_dropout = keras.layers.Dropout(dropout, dtype=policy, name="proj_dropout")
        self.weights_dropout = keras.layers.Dropout(
            attention_dropout, dtype=policy, name="weights_dropout"
        )
        self.supports_masking = True

    def build(self, x_shape, attention_mask_shape=None):
        self.qkv.build(x_shape)
        self.q_norm.build((None, None, self.num_heads, self.head_dim))
        self.k_norm.build((None, None, self.num_heads, self.head_dim))
        self.proj.build((None, None, self.hidden_size))
        self.built = True

    def call(self, x, prefix_length=0, attention_mask=None, training=None):
        batch, length = ops.shape(x)[0], ops.shape(x)[1]
        # Split and not indexed: the gradient of a split is one concatenation.
        q, k, v = (
            ops.reshape(part, (batch, length, self.num_heads, self.head_dim))
            for part in ops.split(self.qkv(x), 3, axis=-1)
        )
        q, k = (
            ops.cast(self.rotary(norm(x), prefix_length=prefix_length), v.dtype)
            for norm, x in ((self.q_norm, q), (self.k_norm, k))
        )
        _check_mask(attention_mask, x.shape, prefix_length)
        mask = _full_mask(attention_mask, prefix_length)
        if training and self.attention_dropout > 0:
            out = self._attend_with_dropout(q, k, v, mask)
        else:
            out = fused_attention(q, k, v, mask)
        out = self.proj(ops.reshape(out, (batch, length, self.hidden_size)))
        return self.proj_dropout(out, training=training)

    def _attend_with_dropout(self, q, k, v, mask):
        # The fused kernels offer no dropout on attention weights, so they are made here.
        scores = ops.einsum("bqhd,bkhd->bhqk", q, k)
        scores = ops.cast(scores, "float32") * self.head_dim**-0.5
        if mask is not None:
            scores = ops.where(mask, scores, -1e30)
        weights = self.weights_dropout(ops.softmax(scores, axis=-1), training=True)
        return ops.einsum("bhqk,bkhd->bqhd", ops.cast(weights, v.dtype), v)

    def compute_output_shape(self, input_shape, *args, **kwargs):
        return (*input_shape[:-1], self.hidden_size)

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.hidden_size,
            "num_heads": self.num_heads,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
        }


def fused_attention(q, k, v, mask=None):
    """Attention by the backend's fastest kernel: q, k, v and result `(batch, length, heads, size)`.

    The kernel of cuDNN that JAX uses wants sizes of a head that eight divides (ELF-M's is 66).
    """
    size = q.shape[-1]
    missing = -size % FUSED_HEAD_MULTIPLE
    padded = missing and keras.backend.backend() == "jax" and has_accelerator()
    if padded:
        # Zeros change no score and no output.
        q, k, v = (ops.pad(x, [[0, 0], [0, 0], [0, 0], [0, missing]]) for x in (q, k, v))
    out = ops.dot_product_attention(q, k, v, mask=mask, scale=size**-0.5)
    return out[..., :size] if padded else out


def _check_mask(mask, shape, prefix_length):
    """Raise `ValueError` where a mask does not fit an input of this static shape."""
    if mask is None or isinstance(prefix_length, bool) or not isinstance(prefix_length, int):
        return
    length = None if shape[1] is None else shape[1] - prefix_length
    received = tuple(getattr(mask, "shape", ()))
    # A batch of one is spread over all rows.
    fits = len(received) in (2, 3) and received[0] in (None, 1, shape[0])
    if shape[0] is None:
        fits = len(received) in (2, 3)
    if not fits or not all(n in (None, length) or length is None for n in received[1:]):
        raise ValueError(
            "`attention_mask` must have shape (batch, length) or (batch, length, length) with "
            f"batch={shape[0]} and length={length}, the prefix not counted. Received: {received}"
        )


def _full_mask(mask, prefix_length):
    """4-D bool mask over prefix and text: the form that every backend's attention accepts."""
    if mask is None:
        return None
    mask = ops.cast(mask, "bool")
    per_query = len(mask.shape) == 3
    if not per_query:
        mask = mask[:, None, :]
    if prefix_length:
        mask = ops.pad(mask, [[0, 0], [0, 0], [prefix_length, 0]], constant_values=True)
        if per_query:
            mask = ops.pad(mask, [[0, 0], [prefix_length, 0], [0, 0]], constant_values=True)
    return mask[:, None]
