"""From a released checkpoint to a Keras preset: read, convert, write, verify."""

import gc
import json
import os
import pathlib

import numpy as np
from keras import ops

from keras_elf import checks, named_arrays
from keras_elf.checkpoints import manifest
from keras_elf.checkpoints.names import is_transposed, variable_path
from keras_elf.checkpoints.opening import open_checkpoint
from keras_elf.checkpoints.sizes import backbone_sizes, check_sizes
from keras_elf.encoders import T5Encoder, TextEncoder
from keras_elf.encoders.deferred_encoder import DeferredEncoder
from keras_elf.initialization import weights_to_come
from keras_elf.models import ELFBackbone, ELFGenerator, ELFPreprocessor
from keras_elf.models.tokenizer import load_transformers_tokenizer
from keras_elf.presets import bundled
from keras_elf.presets.preset_directory import written_whole

_ENCODERS = (TextEncoder, DeferredEncoder)


def import_checkpoint(
    checkpoint,
    preset_dir,
    preset=None,
    encoder=None,
    tokenizer=None,
    sequence_length=None,
    weights="ema",
    source=None,
):
    """Convert a checkpoint of the public ELF code into a Keras preset directory.

    The file is read as arrays, nothing of it is executed, and the framework that wrote it is
    not needed (orbax directories need the extra "orbax", msgpack files "flax"). Names and
    shapes must fit exactly.
    The preset is loaded again and compared before it appears under its name; it holds a
    `manifest.json` with where it came from.

    Args:
        checkpoint: str or path. A torch `checkpoint_<step>` file, a flax msgpack file, an
            orbax directory, or a directory with several of these, of which the last step is
            taken.
        preset_dir: str or path. The directory to write.
        preset: str. Name of the published model, such as `"elf_b_owt"`, whose settings are
            used and whose sizes the arrays must have. Defaults to `None`: sizes are read
            from the arrays and settings are the defaults of `ELFGenerator`.
        encoder: a `keras_elf.encoders.TextEncoder`, a directory of `transformers` with a T5,
            or a keras-hub T5 preset (name, handle or directory). Defaults to `None`: the
            preset then holds the network alone, for `ELFBackbone.from_preset`.
        tokenizer: `spiece.model` or a directory of `transformers` with it, or a
            `keras_hub.tokenizers.Tokenizer`. Defaults to the encoder's directory where that
            has one, else a model on token ids is written.
        sequence_length: int. Tokens in a row, where `preset` does not say it.
        weights: `"ema"` or `"raw"`. Defaults to `"ema"`, with which ELF samples.
        source: dict of what else is known of the origin, for the manifest.

    Returns:
        dict, the manifest.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged or malicious, or its arrays do not fit; missing,
            surplus and mis-shaped arrays are listed.
        ImportError: if an extra is needed; it is named.
    """
    checks.choice("weights", weights, ("ema", "raw"))
    for name, value in (("checkpoint", checkpoint), ("preset_dir", preset_dir)):
        _check_path(name, value)
    for name, value, kind in (("encoder", encoder, _ENCODERS), ("tokenizer", tokenizer, None)):
        known = isinstance(value, kind) if kind else hasattr(value, "tokenize")
        if value is not None and not known:
            _check_path(name, value)
    if source is not None and not isinstance(source, dict):
        raise ValueError(f"`source` must be a dict for the manifest. Received: {source!r}")
    if preset is not None:
        bundled.directory(preset)
    released = open_checkpoint(checkpoint)
    if weights not in released.weights:
        others = " or ".join(f"weights={name!r}" for name in released.weights)
        raise ValueError(f"{released.path} has no {weights!r} weights. Pass {others}")
    arrays = released.weights[weights]
    sizes = backbone_sizes(arrays)
    if preset is not None:
        check_sizes(sizes, _bundled_config(preset, "config.json"), released.path, preset)
    encoder, tokenizer = _parts(encoder, tokenizer)
    if isinstance(encoder, TextEncoder):
        _check_finite(encoder)

    with written_whole(preset_dir) as directory:
        with weights_to_come():
            model = _model(preset, sizes, encoder, tokenizer, sequence_length)
        backbone = model if encoder is None else model.backbone
        source_name = f"{released.path} ({weights} weights)"
        named_arrays.assign(*_fitted(backbone, arrays), source_name, "the network")
        model.save_to_preset(directory)
        facts = {
            **(source or {}),
            "preset": preset,
            "weights": weights,
            "step": released.step,
            "format": released.format,
            "checkpoint": released.path.name,
            "sha256": manifest.digests(released.path),
            "parameters": backbone.count_params(),
            "holds": type(model).__name__,
        }
        # The largest model takes 2.6 GB: it is not held twice.
        del model, backbone
        gc.collect()
        _verify(directory, arrays, encoder)
        return manifest.write(directory, facts)


def _check_path(name, value):
    if not isinstance(value, (str, os.PathLike)):
        raise ValueError(f"`{name}` must be a str or a path. Received: {value!r:.80}")


def _check_finite(encoder):
    bad = [v.path for v in encoder.variables if not _is_finite(ops.convert_to_numpy(v.value))]
    if bad:
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        raise ValueError(
            f"`encoder` holds values that are not finite, in {', '.join(bad[:3])}{more}. Load it "
            "again from a sound file"
        )


def _is_finite(array):
    if array.dtype.kind in "iub":
        return True
    # NumPy does not look into the 16-bit floats of other packages.
    return bool(np.isfinite(array.astype("float32")).all())


def _parts(encoder, tokenizer):
    """The encoder and tokenizer as objects, or `None`."""
    if encoder is None and tokenizer is not None:
        raise ValueError("`tokenizer` needs an `encoder`: text is encoded before it is anything")
    if tokenizer is None and not isinstance(encoder, _ENCODERS) and encoder is not None:
        beside = pathlib.Path(encoder, "spiece.model")
        tokenizer = beside.parent if beside.is_file() else None
    if isinstance(tokenizer, (str, os.PathLike)):
        path = pathlib.Path(tokenizer)
        if path.is_file() and path.name != "spiece.model":
            raise ValueError(f"`tokenizer` must be a file named 'spiece.model'. Received: {path}")
        tokenizer = load_transformers_tokenizer(path.parent if path.is_file() else path)
    elif tokenizer is not None:
        tokenizer = tokenizer, None
    if encoder is not None and not isinstance(encoder, _ENCODERS):
        directory = pathlib.Path(encoder)
        if directory.is_dir() and any(directory.glob("*.safetensors*")):
            encoder = T5Encoder.from_transformers(directory)
        else:
            encoder = _keras_hub_encoder(os.fspath(encoder))
    return encoder, tokenizer


def _keras_hub_encoder(preset):
    try:
        return T5Encoder.from_preset(preset)
    except ValueError as error:
        if "Unknown preset identifier" not in str(error):
            raise
        raise ValueError(
            f"`encoder`: there is no directory {preset!r} here, and keras-hub has no T5 preset of "
            "that name. A directory of `transformers` holds config.json and model.safetensors"
        ) from None


def _model(preset, sizes, encoder, tokenizer, sequence_length):
    """An untrained model of these sizes, with the settings of the preset."""
    if encoder is None:
        return ELFBackbone(**sizes, dtype="float32", name="elf_backbone")
    preprocessor, settings = None, {}
    rows = {"sequence_length": sequence_length}
    if preset is not None:
        rows = dict(_bundled_config(preset, "preprocessor.json"))
        settings = _bundled_config(preset, "task.json")
        settings = {
            k: v for k, v in settings.items() if k not in ("backbone", "encoder", "preprocessor")
        }
        if sequence_length is not None:
            settings["sequence_length"] = rows["sequence_length"] = sequence_length
    if tokenizer is not None:
        tokenizer, vocabulary_size = tokenizer
        if rows["sequence_length"] is None:
            raise ValueError("`sequence_length` must be given where `preset` does not say it")
        for name in ("tokenizer", "name", "dtype", "trainable", "config_file"):
            rows.pop(name, None)
        rows.setdefault("vocabulary_size", vocabulary_size)
        preprocessor = ELFPreprocessor(tokenizer, **rows, name="preprocessor")
    elif sequence_length is not None:
        settings["sequence_length"] = sequence_length
    backbone = ELFBackbone(**sizes, dtype="float32", name="elf_backbone")
    parts = {"backbone": backbone, "encoder": encoder, "preprocessor": preprocessor}
    return ELFGenerator.from_config({**settings, **parts})


def _verify(directory, arrays, encoder):
    """Load the written preset as a user would; raise `ValueError` if it is not the source."""
    loaded = (ELFBackbone if encoder is None else ELFGenerator).from_preset(directory)
    backbone = loaded if encoder is None else loaded.backbone
    wrong = named_arrays.differing(*_fitted(backbone, arrays))
    if isinstance(encoder, TextEncoder):
        for ours, source in zip(loaded.encoder.variables, encoder.variables, strict=True):
            if not np.array_equal(ops.convert_to_numpy(ours), ops.convert_to_numpy(source)):
                wrong.append(ours.path)
    if wrong:
        raise ValueError(f"The written preset does not hold the checkpoint's values: {wrong}")
    z = np.ones((1, 2, backbone.latent_dim), "float32")
    scale = 1.0 if backbone.takes_guidance_scale else None
    hidden = backbone.hidden_states(z, np.ones(1, "float32"), z, guidance_scale=scale, decode=1.0)
    for head in (backbone.denoising_head, backbone.unembedding):
        if not np.isfinite(ops.convert_to_numpy(head(hidden))).all():
            raise ValueError("The network of this checkpoint gives values that are not finite")


def _fitted(backbone, arrays):
    """Variables and arrays by variable path, as `named_arrays` takes them."""
    by_path = {variable_path(name): array for name, array in arrays.items()}
    transposed = {variable_path(name): is_transposed(name) for name in arrays}
    if len(by_path) < len(arrays):
        raise ValueError("Several arrays of the checkpoint are meant for one variable")
    # Keras names the variables of a functional model from its layers on.
    variables = {v.path.removeprefix(f"{backbone.name}/"): v for v in backbone.variables}
    return {path: (v, transposed.get(path, False)) for path, v in variables.items()}, by_path


def _bundled_config(preset, file):
    text = (bundled.directory(preset) / file).read_text(encoding="utf-8")
    return json.loads(text)["config"]
