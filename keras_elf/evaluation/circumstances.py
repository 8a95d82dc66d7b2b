"""What figures depend on: sampling settings, versions, and the published protocol."""

import importlib.metadata
import platform
import re

import keras

from keras_elf import samplers
from keras_elf.version import __version__

_BACKENDS = {"jax": "jax", "tensorflow": "tensorflow", "torch": "torch"}
# What `generate` takes and an evaluation may set.
GENERATE_ARGUMENTS = (
    *samplers.OPTIONS,
    "signals",
    "batch_size",
    "length",
    "callback",
    "verbose",
    "use_averages",
)


def sampling_settings(model, seed, conditional, options):
    """How `model.generate(**options)` will sample, as a JSON-able dict."""
    config = model.sampling.updated(**{name: options.get(name) for name in samplers.OPTIONS})
    normal = samplers.SampleNoise(seed).grid(config.num_steps)
    grid = config.sampler.time_grid(config.num_steps, normal)
    engine, length = samplers.SamplingEngine(model.backbone), options.get("length")
    settings = {
        **config.report(),
        "length": model.sequence_length if length is None else length,
        "seed": seed,
        "use_averages": options.get("use_averages", True),
        "forwards_per_text": engine.evaluations(config, grid, conditional),
        "dtype": model.dtype_policy.name,
        "parameters": int(model.backbone.count_params()),
    }
    if not conditional:
        settings.pop("guidance_scale")
    return settings


def environment(*packages):
    """Backend and versions; `packages` are further distributions that took part."""
    backend = keras.backend.backend()
    versions = {
        "keras-elf": __version__,
        "python": platform.python_version(),
    }
    for package in ("keras", "keras-hub", _BACKENDS.get(backend, backend), "numpy", *packages):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {"backend": backend, "versions": versions}


def published_protocol(preset, num_samples, settings, judge, figures):
    """The published figures of a preset that are nearest, and how the protocol differs.

    Args:
        preset: str. One of `ELFGenerator.presets`.
        num_samples, settings, judge, figures: as in the report.

    Returns:
        `(figures and settings, differences)`: a dict, or `None` where nothing is published, and
        a tuple of str.

    Raises:
        ValueError: for an unknown preset.
    """
    from keras_elf.presets import bundled

    rows = bundled.information(preset)["published"]
    compared = [(row, _differences(row, num_samples, settings, judge, figures)) for row in rows]
    if not compared:
        return None, ()
    row, differences = min(compared, key=lambda pair: len(pair[1]))
    return row, tuple(differences)


def _differences(row, num_samples, settings, judge, figures):
    own = {**settings, **settings.get("sampler_config", {})}
    found = []
    for name in ("num_steps", "sampler", "gamma", "self_cond_guidance_scale"):
        if name in row and own.get(name) != row[name]:
            found.append(f"{name} {own.get(name, 'unknown')}, published {row[name]}")
    count = re.search(r"(\d+) samples", row.get("data", ""))
    if count and int(count[1]) != num_samples:
        found.append(f"{num_samples} samples, published {count[1]}")
    if "generative_perplexity" in row:
        name = "none" if judge is None else judge["name"]
        if "gpt2_large" not in name:
            found.append(f"judge {name}, published GPT-2 Large")
        if own.get("length") != 1024:
            found.append(f"{own.get('length', 'unknown')} tokens a text, published 1024")
    if any(name in row and name in figures for name in ("bleu", "rouge1")):
        found.append(f"published on {row['data']}: only the same inputs and references compare")
    return found
