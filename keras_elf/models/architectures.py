"""The published sizes of ELF."""

import keras

from keras_elf import checks
from keras_elf.layers import ContextSignal, ModeSignal, ScaleSignal, TimeSignal

# Table of the paper's model sizes; what is not named is shared by all three.
ARCHITECTURES = {
    "elf_b": {"depth": 12, "hidden_size": 768, "num_heads": 12},
    "elf_m": {"depth": 24, "hidden_size": 1056, "num_heads": 16},
    "elf_l": {"depth": 32, "hidden_size": 1280, "num_heads": 16},
}


def architecture(name):
    """Constructor arguments of `ELFBackbone` for a published size.

    Args:
        name: `"elf_b"`, `"elf_m"` or `"elf_l"` (105M, 343M, 652M parameters).

    Returns:
        dict of arguments, latent width 512 and T5's vocabulary of 32,100 included.

    Raises:
        ValueError: for another name.
    """
    checks.choice("architecture", name, ARCHITECTURES)
    return {"vocabulary_size": 32100, "latent_dim": 512, **ARCHITECTURES[name]}


def parameter_count(
    vocabulary_size,
    latent_dim,
    depth,
    hidden_size,
    num_heads,
    mlp_ratio=4.0,
    bottleneck_dim=128,
    num_time_tokens=4,
    num_guidance_tokens=4,
    num_mode_tokens=4,
    tied_to=None,
    context_signals=None,
    **_,
):
    """Number of weights of an `ELFBackbone` with these arguments, without building it.

    Arguments that change no shape are passed over; `context_signals` may be configurations.
    With `tied_to` the unembedding matrix is the encoder's and not counted.

    Returns:
        int.
    """
    width, latent = hidden_size, latent_dim
    inner = int(int(width * mlp_ratio) * 2 / 3)
    block = (
        2 * width  # norms
        + 2 * (width // num_heads)  # norms of queries and keys
        + _dense(width, 3 * width)
        + _dense(width, width)
        + _dense(width, 2 * inner)
        + _dense(inner, width)
    )
    if context_signals is None:
        context = (
            TimeSignal.parameter_count(width, num_time_tokens)
            + bool(num_guidance_tokens) * ScaleSignal.parameter_count(width, num_guidance_tokens)
            + ModeSignal.parameter_count(width, num_mode_tokens)
        )
    else:
        context = sum(_signal_parameters(signal, width) for signal in context_signals)
    return (
        _dense(2 * latent, latent)
        + latent * bottleneck_dim
        + _dense(bottleneck_dim, width)
        + context
        + depth * block
        + width
        + _dense(width, latent)  # denoising head
        + _dense(width, latent)
        + (latent * vocabulary_size if tied_to is None else 0)
        + vocabulary_size
    )


def _signal_parameters(signal, width):
    """Number of weights of a `ContextSignal` or of what its configuration describes."""
    if isinstance(signal, dict):
        cls, config = (
            keras.saving.get_registered_object(signal["registered_name"]),
            signal["config"],
        )
    else:
        cls, config = type(signal), signal.get_config()
    if not (isinstance(cls, type) and issubclass(cls, ContextSignal)):
        raise ValueError(f"`context_signals` must be ContextSignals. Received: {signal!r:.200}")
    return cls.parameter_count(width, **config)


def _dense(inputs, outputs):
    """Number of weights of a dense layer with bias."""
    return (inputs + 1) * outputs
