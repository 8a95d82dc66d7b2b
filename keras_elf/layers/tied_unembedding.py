"""The head that turns hidden states into token logits."""

import keras
from keras import ops

from keras_elf import checks

# 256 MiB of float32.
MAX_LOGITS = 2**24


@keras.saving.register_keras_serializable(package="keras_elf")
class TiedUnembedding(keras.layers.Layer):
    """Dense to the embedding width, GELU (tanh form), then `x W + b` over the vocabulary.

    `W` is a matrix of its own, or the transposed table of an embedding layer: then there
    is one variable, trained by the sum of both gradients. The released ELF weights are
    untied. Logits are float32 under every policy.

    Example:

    ```python
    tokens = keras.layers.Embedding(32100, 512)
    logits = keras_elf.layers.TiedUnembedding(32100, tied_to=tokens)(hidden)
    ```

    Args:
        vocabulary_size: int. Number of logits V.
        embedding_dim: int. Width D of the embedding space. Defaults to the width of the
            tied table, or without one to the width of the input.
        tied_to: a layer with a token table: a `keras.layers.Embedding` (or subclass), or a
            `keras_elf` text encoder with a `token_embedding`. Rows past `vocabulary_size`
            (padding of T5's table) are not used. Defaults to `None`, untied.

    Call arguments:
        x: tensor `(..., hidden_size)`. Hidden states.

    Returns:
        float32 tensor `(..., vocabulary_size)`.

    Raises:
        ValueError: if `tied_to` has no table, a table of another width than
            `embedding_dim`, or fewer rows than `vocabulary_size`.

    Source: ELF, arXiv 2605.10938 (shared-weight decoding).
    """

    def __init__(self, vocabulary_size, embedding_dim=None, tied_to=None, **kwargs):
        super().__init__(**kwargs)
        self.vocabulary_size = checks.integer("vocabulary_size", vocabulary_size, minimum=1)
        if embedding_dim is not None:
            embedding_dim = checks.integer("embedding_dim", embedding_dim, minimum=1)
        self.tied_to = tied_to
        if tied_to is not None:
            rows, width = _table_shape(tied_to)
            if embedding_dim not in (None, width):
                raise ValueError(
                    "The table of `tied_to` must have width embedding_dim. Received: "
                    f"embedding_dim={embedding_dim}, table of {rows} x {width}"
                )
            if rows < vocabulary_size:
                raise ValueError(
                    "The table of `tied_to` must have at least vocabulary_size rows. "
                    f"Received: vocabulary_size={vocabulary_size}, table of {rows} x {width}"
                )
            embedding_dim = width
        self.embedding_dim = embedding_dim
        self.proj = self.unembed = None

    def build(self, input_shape):
        width = self.embedding_dim or input_shape[-1]
        self.proj = keras.layers.Dense(width, dtype=self.dtype_policy, name="proj")
        self.proj.build(input_shape)
        inner = (*input_shape[:-1], width)
        if self.tied_to is None:
            self.unembed = keras.layers.Dense(self.vocabulary_size, dtype="float32", name="unembed")
            self.unembed.build(inner)
        else:
            if not self.tied_to.built:
                self.tied_to.build((None, None))
            self.bias = self.add_weight(
                name="bias", shape=(self.vocabulary_size,), initializer="zeros"
            )
        self.built = True

    def embed(self, x):
        """The point in embedding space that `x` stands for, before the vocabulary."""
        return ops.gelu(self.proj(x), approximate=True)

    def call(self, x):
        x = self.embed(x)
        if self.tied_to is None:
            return self.unembed(x)
        table = ops.cast(self._tied_rows(), "float32")
        logits = ops.matmul(ops.cast(x, "float32"), ops.transpose(table))
        return logits + ops.cast(self.bias, "float32")

    def most_likely(self, x):
        """Ids of the largest logits, of which only so many exist at a time.

        The sequence is walked in blocks of positions, so that `(batch, length,
        vocabulary_size)` logits are never held: at most `MAX_LOGITS` numbers, or those of
        one position of the batch. The smallest id wins among equal logits.

        Args:
            x: tensor `(batch, length, hidden_size)` of known shape.

        Returns:
            int32 tensor `(batch, length)`.
        """
        batch, length, width = x.shape
        blocks = -(-length // max(1, MAX_LOGITS // (batch * self.vocabulary_size)))
        if blocks == 1:
            return self._argmax(x)
        size = -(-length // blocks)
        x = ops.pad(x, [[0, 0], [0, blocks * size - length], [0, 0]])
        x = ops.swapaxes(ops.reshape(x, (batch, blocks, size, width)), 0, 1)
        ids = ops.map(self._argmax, x)
        return ops.reshape(ops.swapaxes(ids, 0, 1), (batch, blocks * size))[:, :length]

    def _argmax(self, x):
        return ops.cast(ops.argmax(self(x), axis=-1), "int32")

    def _tied_rows(self):
        table = _table(self.tied_to)
        if getattr(table, "quantization_mode", None) is None:
            return table.embeddings[: self.vocabulary_size]
        # Quantised rows are integers whose scales the table's own lookup applies.
        return table(ops.arange(self.vocabulary_size))

    def compute_output_spec(self, x):
        return keras.KerasTensor((*x.shape[:-1], self.vocabulary_size), dtype="float32")

    def get_config(self):
        tied = self.tied_to
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_dim": self.embedding_dim,
            "tied_to": None if tied is None else keras.saving.serialize_keras_object(tied),
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        if isinstance(config.get("tied_to"), dict):
            config["tied_to"] = keras.saving.deserialize_keras_object(config["tied_to"])
        return cls(**config)


def _table(layer):
    """The layer that owns the token table: `layer` itself or its `token_embedding`."""
    return getattr(layer, "token_embedding", None) or layer


def _table_shape(layer):
    table = _table(layer)
    if not (hasattr(table, "input_dim") and hasattr(table, "output_dim")):
        raise ValueError(
            "`tied_to` must be an Embedding layer or an encoder with a `token_embedding`. "
            f"Received: {layer!r}"
        )
    return table.input_dim, table.output_dim
