"""From rows of conditions to token ids: batches of samples, one after the other."""

import contextlib

import numpy as np
from keras import ops
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from keras_elf import checks
from keras_elf.compiled import CompiledFunctions
from keras_elf.configurable import signature
from keras_elf.samplers import SampleNoise, SamplingEngine

BATCH_SIZE = 32


class TextWriter:
    """Samples rows of token ids with a network and, for conditions, a latent encoder.

    Nothing of the model is changed while it works, so that several threads may use one.

    Args:
        network: see `keras_elf.Denoiser`.
        latent_encoder: `LatentEncoder`, which encodes conditions.
        objective: what the network was trained with.
        eager: bool. Whether nothing is compiled. Defaults to `False`.
    """

    def __init__(self, network, latent_encoder, objective, eager=False):
        self.made_from = _parts(network, latent_encoder, objective, eager)
        self.network, self.latent_encoder = network, latent_encoder
        self.engine = SamplingEngine(
            network, objective.prediction, objective.noise_scale, objective.min_time_gap, eager
        )
        self._functions = CompiledFunctions(eager)

    def is_of(self, network, latent_encoder, objective, eager=False):
        """Whether it was made from these parts, as they are now."""
        return self.made_from == _parts(network, latent_encoder, objective, eager)

    def write(
        self,
        config,
        length,
        total,
        rows=None,
        signals=None,
        seed=None,
        batch_size=None,
        callback=None,
        verbose=True,
        values=None,
    ):
        """Token ids `(total, length)`, int32 NumPy.

        Args:
            config: `SamplingConfig`.
            length: int. Tokens of a row.
            total: int. Rows.
            rows: dict of `token_ids`, `is_cond`, `is_valid`, `(total, length)`: what is given
                stays in place. `None` for unconditional text.
            signals: dict of `(total,)` arrays, or `None`.
            seed: int or `None`.
            batch_size: int. Rows sampled at once. Defaults to `32`.
            callback: called with a `SamplingState` after each step.
            verbose: bool. Whether a progress bar is shown in a terminal.
            values: function from a list of variables to the values to use, or `None`.
        """
        if callback is not None and not callable(callback):
            raise ValueError(f"`callback` must be callable. Received: {callback!r}")
        for rule in config.guidance:
            rule.check_rows(total)
        batch_size = BATCH_SIZE if batch_size is None else batch_size
        batch_size = min(checks.integer("batch_size", batch_size, minimum=1), total)
        noise, num_steps = SampleNoise(seed), config.num_steps
        grid = config.sampler.time_grid(num_steps, noise.grid(num_steps))
        network_values = _values(values, self.network)
        ids = np.empty((total, length), "int32")
        batches = range(0, total, batch_size)
        with _progress(verbose, num_steps * len(batches)) as advance:
            for start in batches:
                # The last batch is filled up, so that it needs no compilation of its own.
                samples = [min(i, total - 1) for i in range(start, start + batch_size)]
                condition = is_cond = None
                given = {k: np.asarray(v)[samples] for k, v in (signals or {}).items()}
                if rows is not None:
                    part = {k: v[samples] for k, v in rows.items()}
                    is_cond, condition = part["is_cond"], self.encode(part, values)
                z = self.engine.run(
                    config,
                    samples,
                    length,
                    noise,
                    grid,
                    condition,
                    is_cond,
                    given,
                    network_values,
                    _after_step(callback, advance),
                )
                _check_finite(z, config)
                found = self.engine.decode(config, z, samples, given, network_values)
                ids[start : start + batch_size] = found[: total - start]
        return ids

    def encode(self, rows, values=None):
        """Clean latents of rows of one batch: float32 tensor `(rows, length, width)`.

        Args:
            rows: dict of `token_ids`, `is_cond`, `is_valid`.
            values: see `write`.
        """
        encoder = self.latent_encoder
        encode = self._functions.get("encode", lambda: encoder.encode, encoder.variables)
        given = (rows[name] for name in ("token_ids", "is_cond", "is_valid"))
        return encode(*given, values=_values(values, encoder))


def _check_finite(z, config):
    if not bool(ops.convert_to_numpy(ops.all(ops.isfinite(z)))):
        rules = [type(rule).__name__ for rule in config.guidance]
        raise ValueError(
            "The sampled latents are not finite, so no text can be read off them. Look at the "
            "network's weights (a diverged training?), at the sampler "
            f"{type(config.sampler).__name__} and at the guidance {rules}"
        )


def _parts(network, latent_encoder, objective, eager):
    return id(network), id(latent_encoder), signature(objective), bool(eager)


def _values(values, layer):
    return None if values is None else values(layer.variables)


def _after_step(callback, advance):
    def after(state):
        advance()
        if callback is not None:
            callback(state)

    return after


@contextlib.contextmanager
def _progress(verbose, num_steps):
    """A progress bar on terminals over all batches' steps; gives what advances it."""
    columns = TextColumn("Generating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    hidden = not (verbose and console.is_terminal)
    bar = Progress(*columns, console=console, transient=True, disable=hidden)
    with bar:
        task = bar.add_task("", total=num_steps)
        yield lambda: bar.advance(task)
