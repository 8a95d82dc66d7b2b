"""The contract between a network and everything that trains it, samples from it or saves it."""

import inspect
import numbers

import keras
from keras import ops

_NEEDED = ("latent_dim", "vocabulary_size", "hidden_states", "denoising_head", "unembedding")
_OPTIONS = ("self_condition", "guidance_scale", "decode", "attention_mask", "training")


class Denoiser:
    """What a network must offer. Put it first among the bases of a Keras layer or model.

    Deriving from it is not needed: any Keras layer or model with these names will do.

    A network of one's own, small but whole:

    ```python
    @keras.saving.register_keras_serializable(package="my_package")
    class MyNetwork(keras_elf.Denoiser, keras.Model):
        def __init__(self, vocabulary_size, latent_dim, width=64, **kwargs):
            super().__init__(**kwargs)
            self.vocabulary_size, self.latent_dim, self.width = vocabulary_size, latent_dim, width
            self.inner = keras.layers.Dense(width, activation="gelu")
            self.denoising_head = keras.layers.Dense(latent_dim)
            self.unembedding = keras.layers.Dense(vocabulary_size)

        def hidden_states(self, z, t, *, self_condition=None, guidance_scale=None, decode=0.0,
                          attention_mask=None, training=False):
            given = self.context(z, t, decode)  # (batch, length, 2)
            return self.inner(keras.ops.concatenate([z, self_condition, given], axis=-1))

        def get_config(self):
            return {"vocabulary_size": self.vocabulary_size, "latent_dim": self.latent_dim,
                    "width": self.width}
    ```

    Attributes:
        latent_dim: int. Width D of the latents.
        vocabulary_size: int. Number of logits V.
        takes_guidance_scale: bool. Whether the network reads the self-conditioning guidance
            scale. Without it no guided target is made in training, and guidance while
            sampling costs a second prediction. Defaults to `False`.
        signals: dict from the name of a further value, one a row, such as `"label"`, to the
            value that means "none". Such networks take `signals=` in `hidden_states`, and may
            have a method `check_signals(values)` that raises `ValueError` for a dict of NumPy
            arrays with a value out of range. Defaults to `{}`.
        denoising_head: callable, `(batch, length, width) -> (batch, length, latent_dim)`.
        unembedding: callable, `(batch, length, width) -> (batch, length, vocabulary_size)`
            logits. Where it has a method `most_likely`, ids are read through that.

    Source: ELF, arXiv 2605.10938 (network; shared-weight decoding).
    """

    takes_guidance_scale = False
    signals = {}

    def hidden_states(
        self,
        z,
        t,
        *,
        self_condition=None,
        guidance_scale=None,
        decode=0.0,
        attention_mask=None,
        training=False,
    ):
        """Hidden states of the tokens, from which both heads read.

        Args:
            z: float32 tensor `(batch, length, latent_dim)`. Noisy latents.
            t: float32 tensor `(batch,)` or scalar. Flow time, 0 noise, 1 clean.
            self_condition: like `z`. The network's earlier prediction, or zeros.
            guidance_scale: `(batch,)`, scalar, or `None`. Given only where
                `takes_guidance_scale`.
            decode: `(batch,)`, scalar or number: 1 to read tokens, 0 to denoise.
            attention_mask: bool `(batch, length)`, the positions that may be seen, or `None`.
            training: bool. Whether dropout is active.

        Returns:
            Tensor `(batch, length, width)`, of a width of the network's own.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `hidden_states`.")

    @staticmethod
    def context(z, *values):
        """Values of a row beside each of its tokens: float32 `(batch, length, len(values))`.

        Args:
            z: tensor `(batch, length, width)`, for its shape.
            *values: scalars, numbers or tensors `(batch,)`.
        """
        ones = ops.ones_like(z[..., 0])
        rows = [ops.reshape(ops.cast(value, "float32"), (-1, 1)) * ones for value in values]
        return ops.stack(rows, axis=-1)


def takes_guidance_scale(network):
    """Whether `network` reads the self-conditioning guidance scale."""
    return bool(getattr(network, "takes_guidance_scale", False))


def signals(network):
    """dict from the names of the further values that `network` reads to their "none"."""
    return dict(getattr(network, "signals", None) or {})


def check_signals(network, values):
    """Raise `ValueError` for values that `network` refuses, where it has `check_signals`.

    Inside a compiled step nobody can look at them any more.

    Args:
        values: dict from names in the network's `signals` to NumPy arrays `(rows,)`.
    """
    check = getattr(network, "check_signals", None)
    if check is not None and values:
        check(values)


def hidden_states(
    network, z, t, self_condition, guidance_scale, decode=0.0, signals=None, training=False
):
    """Ask `network`, handing over only what it takes; arguments as in `Denoiser`.

    Args:
        signals: dict of the further values of these rows, or `None`.
    """
    options = {"signals": signals} if signals and getattr(network, "signals", None) else {}
    return network.hidden_states(
        z,
        t,
        self_condition=self_condition,
        guidance_scale=guidance_scale if takes_guidance_scale(network) else None,
        decode=decode,
        training=training,
        **options,
    )


def most_likely(network, hidden):
    """int32 ids `(batch, length)` of the largest logits."""
    read = getattr(network.unembedding, "most_likely", None)
    if read is not None:
        return read(hidden)
    return ops.cast(ops.argmax(network.unembedding(hidden), axis=-1), "int32")


def check_names(network):
    """Raise `ValueError` if `network` lacks something that the contract names."""
    if not isinstance(network, keras.Layer):
        raise ValueError(
            "The network must be a keras.Layer or keras.Model, such as ELFBackbone, whose weights "
            f"Keras knows. Received: {network!r}"
        )
    name = type(network).__name__
    missing = [part for part in _NEEDED if getattr(network, part, None) is None]
    if missing:
        raise ValueError(
            f"The network {name} lacks {missing}. A network needs {list(_NEEDED)}; "
            "keras_elf.Denoiser tells what each must be"
        )
    for part in ("latent_dim", "vocabulary_size"):
        value = getattr(network, part)
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
            raise ValueError(f"`{part}` of {name} must be a whole number >= 1. Received: {value!r}")
    extra = getattr(network, "signals", None) or {}
    if not isinstance(extra, dict) or not all(
        empty is None or isinstance(empty, numbers.Real) for empty in extra.values()
    ):
        raise ValueError(
            f"`signals` of {name} must be a dict from names to the numbers that mean none. "
            f"Received: {extra!r:.100}"
        )
    for part in ("hidden_states", "denoising_head", "unembedding"):
        if not callable(getattr(network, part)):
            raise ValueError(f"`{part}` of {name} must be callable")
    parameters = inspect.signature(network.hidden_states).parameters
    wanted = [*_OPTIONS, *(["signals"] if signals(network) else [])]
    missing = [option for option in wanted if option not in parameters]
    if missing and all(p.kind is not inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        raise ValueError(f"`hidden_states` of {name} must take the arguments {missing}")


def ensure_built(network):
    """Call a network once where some of its layers have no variables yet.

    Networks of one's own may make their variables at the first call. Weights can only be
    stored, loaded and trained after it.
    """
    if not _is_built(network):
        z, one = ops.zeros((1, 2, network.latent_dim)), ops.ones((1,))
        _outputs(network, z, one, z)
        # Called by its methods alone, it would never be told.
        network.built = True


def check_shapes(network):
    """Build `network` and raise `ValueError` if an output has another shape than it must.

    Nothing is computed where all layers are built already.
    """
    ensure_built(network)
    name, shape = type(network).__name__, (2, 3, network.latent_dim)
    inputs = [keras.KerasTensor(s, dtype="float32") for s in (shape, shape[:1], shape)]
    outputs = _Outputs(network).compute_output_spec(*inputs)
    widths = {"hidden_states": None, "denoising_head": "latent_dim"}
    widths["unembedding"] = "vocabulary_size"
    for (part, width), output in zip(widths.items(), outputs, strict=True):
        found = tuple(output.shape)
        wanted = (*shape[:2], found[-1] if width is None else getattr(network, width))
        if found != wanted:
            raise ValueError(
                f"`{part}` of {name} must give (batch, length, {width or 'width'}), which is "
                f"{wanted} for latents of shape {shape}. Received: {found}"
            )


def _is_built(network):
    return all(layer.built for layer in network._flatten_layers())


class _Outputs(keras.Operation):
    """`_outputs` in the one form that Keras's public names can trace without computing."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def call(self, *args):
        return _outputs(self.network, *args)


def _outputs(network, z, t, self_condition):
    # Times serve as scale and gate too: numbers of a row, whose values do not matter here.
    given = {
        name: ops.full((z.shape[0],), empty, "int32" if isinstance(empty, int) else "float32")
        for name, empty in signals(network).items()
        if empty is not None
    }
    hidden = hidden_states(network, z, t, self_condition, t, t, given)
    return hidden, network.denoising_head(hidden), network.unembedding(hidden)
