"""One transformer block of ELF."""

import keras
from keras import ops

from keras_elf.layers.attention import NORM_EPSILON, ELFAttention
from keras_elf.layers.swiglu import SwiGLU


@keras.saving.register_keras_serializable(package="keras_elf")
class ELFBlock(keras.layers.Layer):
    """Pre-norm residual block: RMS norm, attention, add; RMS norm, SwiGLU, add.

    Example:

    ```python
    x = keras.Input((None, 768))
    y = keras_elf.layers.ELFBlock(768, num_heads=12)(x, prefix_length=12)
    ```

    Args:
        hidden_size: int. Width of the stream.
        num_heads: int. Attention heads; must divide `hidden_size` into even sizes.
        mlp_ratio: float. See `SwiGLU`. Defaults to `4.0`.
        dropout: float in [0, 1]. After attention and inside the SwiGLU. Defaults to `0.0`.
        attention_dropout: float in [0, 1]. On attention weights. Defaults to `0.0`.

    Call arguments:
        x: tensor `(batch, prefix_length + length, hidden_size)`.
        prefix_length: int. Leading context tokens (see `ContextPrefix`). Defaults to `0`.
        attention_mask: optional mask over the text tokens, see `ELFAttention`.

    Returns:
        Tensor of the shape and dtype of `x`. Under reduced precision a float32 stream stays
        float32, and only what is added to it was computed in fewer bits.

    Source: ELF, arXiv 2605.10938 (network).
    """

    def __init__(
        self, hidden_size, num_heads, mlp_ratio=4.0, dropout=0.0, attention_dropout=0.0, **kwargs
    ):
        super().__init__(autocast=False, **kwargs)
        policy = self.dtype_policy
        self.attn = ELFAttention(
            hidden_size, num_heads, dropout, attention_dropout, dtype=policy, name="attn"
        )
        self.mlp = SwiGLU(hidden_size, mlp_ratio, dropout, dtype=policy, name="mlp")
        self.norm1 = self._norm("norm1")
        self.norm2 = self._norm("norm2")
        self.supports_masking = True

    def _norm(self, name):
        return keras.layers.RMSNormalization(epsilon=NORM_EPSILON, dtype="float32", name=name)

    @property
    def draws(self):
        """Whether the block draws random numbers in training."""
        return self.attn.dropout > 0 or self.attn.attention_dropout > 0

    def build(self, x_shape, attention_mask_shape=None):
        for layer in (self.norm1, self.attn, self.norm2, self.mlp):
            layer.build(x_shape)
        self.built = True

    def call(self, x, prefix_length=0, attention_mask=None, training=None):
        attended = self.attn(
            self.norm1(x),
            prefix_length=prefix_length,
            attention_mask=attention_mask,
            training=training,
        )
        x = x + ops.cast(attended, x.dtype)
        return x + ops.cast(self.mlp(self.norm2(x), training=training), x.dtype)

    def compute_output_spec(self, x, *args, **kwargs):
        return keras.KerasTensor(x.shape, dtype=x.dtype)

    def compute_output_shape(self, input_shape, *args, **kwargs):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_size": self.attn.hidden_size,
            "num_heads": self.attn.num_heads,
            "mlp_ratio": self.mlp.mlp_ratio,
            "dropout": self.attn.dropout,
            "attention_dropout": self.attn.attention_dropout,
        }
