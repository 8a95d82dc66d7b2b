"""Text written in the middle of training."""

import pathlib
import time

import keras
import numpy as np

from keras_elf import checks
from keras_elf.training.averages import averages_in_use
from keras_elf.training.callbacks.fit_callback import FitCallback, is_due
from keras_elf.training.callbacks.records import RecordFile

OPTIONS = ("num_steps", "sampler", "guidance_scale", "self_cond_guidance_scale", "length")
OPTIONS = (*OPTIONS, "batch_size", "use_averages")


@keras.saving.register_keras_serializable(package="keras_elf")
class SampleText(FitCallback):
    """Writes text, each so many optimizer steps, with the weights that `generate` uses.

    Training does not notice: no seed of its own is used and the weights come back bit by bit.
    The same seed each time lets the texts be compared over the run.

    Args:
        every_n_steps: int. Optimizer steps between samples. Defaults to `1000`.
        num_samples: int. Unconditional texts a time. Defaults to `2`; without meaning where
            `inputs` are given.
        inputs: conditions, as in `ELFGenerator.generate`. Defaults to `None`.
        references: list of str, what should follow each of the inputs; shown beside what was
            written. Defaults to `None`.
        seed: int. Seed of the samples. Defaults to `0`.
        path: path of a file that gets a line of JSON each time, with `step`, `epoch`, `texts`
            and `seconds`, and `inputs` and `references` where there are any. A run that
            `ResumableCheckpoint` resumes goes on in it. Defaults to `None`.
        print_fn: function of one string that shows the texts, or `None`. Defaults to `print`.
        **options: `num_steps`, `sampler`, `guidance_scale`, `self_cond_guidance_scale`,
            `length`, `batch_size`, `use_averages`, as in `ELFGenerator.generate`.

    Raises:
        ValueError: for arguments out of range, or what the model cannot generate, which is
            found before training starts.
        TypeError: for unknown options.
    """

    def __init__(
        self,
        every_n_steps=1000,
        num_samples=2,
        *,
        inputs=None,
        references=None,
        seed=0,
        path=None,
        print_fn=print,
        **options,
    ):
        super().__init__()
        checks.no_unknown("SampleText", options, OPTIONS)
        self.every_n_steps = checks.integer("every_n_steps", every_n_steps, minimum=1)
        self.num_samples = checks.integer("num_samples", num_samples, minimum=1)
        self.seed = checks.integer("seed", seed, minimum=0, maximum=2**31 - 1)
        for name in ("num_steps", "batch_size"):
            if options.get(name) is not None:
                options[name] = checks.integer(name, options[name], minimum=1)
        if path is not None and (not isinstance(path, (str, pathlib.Path)) or not str(path)):
            raise ValueError(f"`path` must be a path. Received: {path!r}")
        if path is not None and pathlib.Path(path).is_dir():
            raise ValueError(f"`path` must be a file. Received the directory {path}")
        if print_fn is not None and not callable(print_fn):
            raise ValueError(f"`print_fn` must be a function or None. Received: {print_fn!r}")
        if path is None and print_fn is None:
            raise ValueError("One of `path` and `print_fn` must be given. Received: None, None")
        if references is not None:
            inputs = [inputs] if isinstance(inputs, str) else inputs
            if inputs is None or isinstance(references, str) or len(references) != len(inputs):
                raise ValueError(
                    "`references` must be a list with one entry for each of `inputs`. Received: "
                    f"inputs={inputs!r:.80}, references={references!r:.80}"
                )
        self.inputs, self.print_fn, self.options = inputs, print_fn, options
        self.references = references
        self.path = None if path is None else pathlib.Path(path)
        self._records = None

    def before_fit(self, run):
        run.require(self, "check_sampling")
        left_out = ("batch_size", "use_averages")
        options = {k: v for k, v in self.options.items() if k not in left_out}
        run.model.check_sampling(self.inputs, **options)

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if self.path is not None:
            self._records = RecordFile(self.path)
            self._records.open(self.clock.step, self.clock.resuming, "SampleText")

    def after_step(self, before, step):
        if not is_due(self.every_n_steps, before, step):
            return
        began = time.monotonic()
        use_averages = self.options.get("use_averages", True)
        in_use = averages_in_use(self.model, use_averages)
        weights = "averages" if in_use else "raw weights"
        texts = self.model.generate(
            self.inputs,
            self.num_samples if self.inputs is None else None,
            seed=self.seed,
            verbose=False,
            **self.options,
        )
        texts = [texts] if isinstance(texts, str) else list(texts)
        texts = [text if isinstance(text, str) else text.tolist() for text in texts]
        if self.print_fn is not None:
            lines = [f"  {line}" for line in self._beside(texts)]
            self.print_fn("\n".join([f"\nStep {step}, written with the {weights}:", *lines]))
        if self._records is not None:
            seconds = round(time.monotonic() - began, 3)
            record = {"step": step, "epoch": self.clock.epoch, "texts": texts, "seconds": seconds}
            self._records.append({**record, **self._given()})

    def _given(self):
        """Conditions and references as JSON holds them; empty without."""
        given = {"inputs": self.inputs, "references": self.references}
        return {name: _plain(value) for name, value in given.items() if value is not None}

    def _beside(self, texts):
        """Each text, behind its condition and before its reference."""
        given = self._given()
        inputs = given.get("inputs")
        if inputs is None:
            return texts
        lines = [f"{one} -> {text}" for one, text in zip(inputs, texts, strict=True)]
        if self.references is None:
            return lines
        right = given["references"]
        return [f"{line}  (right: {one})" for line, one in zip(lines, right, strict=True)]

    def after_fit(self, run):
        if self._records is not None:
            self._records.close()
            self._records = None

    def get_config(self):
        names = ("every_n_steps", "num_samples", "inputs", "references", "seed")
        config = {name: getattr(self, name) for name in names}
        options = dict(self.options)
        if hasattr(options.get("sampler"), "get_config"):
            options["sampler"] = keras.saving.serialize_keras_object(options["sampler"])
        path = None if self.path is None else str(self.path)
        return {**config, "path": path, **options}


def _plain(values):
    values = [values] if isinstance(values, str) else values
    return [one if isinstance(one, str) else np.asarray(one).tolist() for one in values]
