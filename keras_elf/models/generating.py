"""The `generate` method and what it checks before any sampling starts."""

import contextlib

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from keras_elf import checks
from keras_elf import samplers as samplers_lib
from keras_elf.data import check_token_ids, cut_at_end, make_rows, strip_prefix
from keras_elf.models.batch_size import fitting_rows
from keras_elf.models.generation import GenerationFunctions, sample_batch, step_prefixes
from keras_elf.training.averages import averaged_weights

# Far past any use, and far from where float32 arithmetic turns into NaN.
MAX_SCALE = 1e4


class Generating:
    """Mixin of `ELFGenerator`: text from noise, with or without conditions."""

    def reset_generation(self):
        """Forget the compiled functions."""
        self._generation_functions = None

    def generate(
        self,
        inputs=None,
        num_samples=None,
        *,
        num_steps=None,
        sampler=None,
        guidance_scale=None,
        self_cond_guidance_scale=None,
        seed=None,
        batch_size=None,
        length=None,
        callback=None,
        verbose=True,
        return_token_ids=False,
        use_averages=True,
    ):
        """Write text.

        N steps cost N + 1 forward passes of the network, 2N + 1 with guidance on the
        condition (run as one doubled batch a step). A sample depends on the seed, its
        number and its condition alone, not on `batch_size` or its neighbours.

        Args:
            inputs: conditions, one text each: str, list of str or lists of token ids.
                `None` for unconditional text.
            num_samples: int. How many unconditional texts. Defaults to `1`.
            num_steps: int. Steps. Defaults to the model's.
            sampler: a `keras_elf.samplers.Sampler`, `"ode"` or `"sde"`. Defaults to the
                model's.
            guidance_scale: float. Guidance on the condition; 1 is none. Defaults to the
                model's.
            self_cond_guidance_scale: float. Guidance on self-conditioning. Defaults to the
                model's.
            seed: int or `None`. The same seed gives the same texts; `None` differs between
                calls.
            batch_size: int. Texts sampled at once. Defaults to as many as the free memory
                lets expect, at most 32 on CPUs and 256 on accelerators.
            length: int. Tokens of a sequence, condition included. Defaults to the model's.
            callback: called after each step with a `keras_elf.samplers.SamplingState`.
            verbose: bool. Whether a progress bar is shown in a terminal.
            return_token_ids: bool. Whether to return ids in place of text.
            use_averages: `True` for averaged weights where training kept some and at least
                half of them comes from training steps, else raw ones; `"always"` for averages
                that have moved at all; `False` for raw weights. Defaults to `True`.

        Returns:
            list of str (a str where `inputs` is a str). Without a preprocessor or with
            `return_token_ids=True` an int32 array `(texts, length)`: the condition taken
            off, cut at the end token where there is a preprocessor, padded with the pad
            token (0 without a preprocessor).

        Raises:
            ValueError: for arguments out of range, an empty list or condition, or ids
                outside the vocabulary.

        Source: ELF, arXiv 2605.10938 (sampling).
        """
        settings = self._generation_settings(
            sampler, num_steps, guidance_scale, self_cond_guidance_scale, length
        )
        rows = None if inputs is None else self._condition_rows(inputs, num_samples, settings)
        if rows is None:
            total = 1 if num_samples is None else num_samples
            total = checks.integer("num_samples", total, minimum=1)
        else:
            total = len(rows["token_ids"])
        ids = self._sample(rows, total, settings, seed, batch_size, callback, verbose, use_averages)
        return self._generated(ids, rows, return_token_ids, single=isinstance(inputs, str))

    def _sample(self, rows, total, settings, seed, batch_size, callback, verbose, use_averages):
        """Token ids `(total, length)`, batch by batch."""
        if callback is not None and not callable(callback):
            raise ValueError(f"`callback` must be callable. Received: {callback!r}")
        if batch_size is None:
            batch_size = fitting_rows(
                self.backbone, settings["length"], conditioned=rows is not None
            )
        batch_size = min(checks.integer("batch_size", batch_size, minimum=1), total)
        noise, num_steps = samplers_lib.SampleNoise(seed), settings["num_steps"]
        grid = settings["sampler"].time_grid(num_steps, noise.grid(num_steps))
        batches = range(0, total, batch_size)

        if self._generation_functions is None:
            self._generation_functions = GenerationFunctions(self)
        ids = np.empty((total, settings["length"]), "int32")
        progress = _progress(verbose, num_steps * len(batches))
        with averaged_weights(self, use_averages), progress as advance:
            prefixes = step_prefixes(self._generation_functions, settings, grid)
            for start in batches:
                # The last batch is filled up, so that it needs no compilation of its own.
                samples = [min(i, total - 1) for i in range(start, start + batch_size)]
                kept = min(batch_size, total - start)
                condition = is_cond = None
                if rows is not None:
                    part = {k: v[samples] for k, v in rows.items()}
                    is_cond = part["is_cond"]
                    condition = self._generation_functions.encode()(
                        part["token_ids"], is_cond, part["is_valid"]
                    )
                ids[start : start + kept] = sample_batch(
                    self._generation_functions,
                    settings,
                    samples,
                    grid,
                    noise,
                    prefixes,
                    condition,
                    is_cond,
                    _after_step(callback, advance),
                )[:kept]
        return ids

    def _generation_settings(
        self, sampler, num_steps, guidance_scale, self_cond_guidance_scale, length
    ):
        def default(value, name):
            return getattr(self, name) if value is None else value

        length = default(length, "sequence_length")
        if length is None:
            raise ValueError("`length` must be given: this model has no `sequence_length`.")
        return {
            "sampler": samplers_lib.get(default(sampler, "sampler")),
            "num_steps": checks.integer("num_steps", default(num_steps, "num_steps"), minimum=1),
            "guidance_scale": checks.number(
                "guidance_scale", default(guidance_scale, "guidance_scale"), -MAX_SCALE, MAX_SCALE
            ),
            "self_cond_guidance_scale": checks.number(
                "self_cond_guidance_scale",
                default(self_cond_guidance_scale, "self_cond_guidance_scale"),
                -MAX_SCALE,
                MAX_SCALE,
            ),
            "length": checks.integer("length", length, minimum=1),
            "noise_scale": self.objective.noise_scale,
        }

    def _condition_rows(self, inputs, num_samples, settings):
        if num_samples is not None:
            raise ValueError(
                "`num_samples` is for unconditional text: with `inputs` there is one text per "
                f"condition. Received: num_samples={num_samples!r}"
            )
        if not isinstance(inputs, (str, dict)):
            if not hasattr(inputs, "__len__") and not hasattr(inputs, "__iter__"):
                raise ValueError(
                    f"`inputs` must be text or a list of texts or ids. Received: {inputs!r}"
                )
            inputs = inputs if hasattr(inputs, "__len__") else list(inputs)
            if not len(inputs):
                raise ValueError(
                    "`inputs` must hold at least one condition. Received: an empty list"
                )
        if self.preprocessor is not None:
            rows = self.preprocessor.generate_preprocess(inputs)
            if rows["token_ids"].shape[1] != settings["length"]:
                raise ValueError(
                    "`length` must be the preprocessor's sequence_length "
                    f"{rows['token_ids'].shape[1]} where there are conditions. Received: "
                    f"{settings['length']}"
                )
            return rows
        if isinstance(inputs, str) or any(isinstance(row, str) for row in inputs):
            raise ValueError(
                "`inputs` must be lists of token ids: this model has no preprocessor for text."
            )
        conditions = [[checks.integer("inputs", i) for i in np.atleast_1d(row)] for row in inputs]
        for number, row in enumerate(conditions):
            if not 0 < len(row) < settings["length"]:
                raise ValueError(
                    f"Each condition must have 1 to {settings['length'] - 1} tokens. Received: "
                    f"{len(row)} tokens in condition {number}"
                )
            check_token_ids(np.array(row), self.backbone.vocabulary_size)
        rows, _ = make_rows(
            [[]] * len(conditions),
            conditions,
            sequence_length=settings["length"],
            pad_id=0,
            end_id=0,
            add_end_token=False,
        )
        rows["is_valid"][:] = True
        return rows

    def _generated(self, ids, rows, return_token_ids, single):
        is_cond = None if rows is None else rows["is_cond"]
        if self.preprocessor is not None and not return_token_ids:
            texts = self.preprocessor.generate_postprocess(ids, is_cond)
            return texts[0] if single else texts
        pad = self.pad_token_id or 0
        if is_cond is not None:
            ids = strip_prefix(ids, is_cond.sum(axis=1), pad)
        if self.preprocessor is not None:
            ids = cut_at_end(ids, self.preprocessor.end_token_id, pad)
        return ids


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
