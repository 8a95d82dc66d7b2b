"""How a published model was trained, as an object that training can start from."""

import dataclasses
import json

from keras_elf import checks
from keras_elf.optimizers import Muon, WarmupSchedule, scaled_learning_rate
from keras_elf.presets import bundled


@dataclasses.dataclass(frozen=True)
class TrainingRecipe:
    """Hyper-parameters of a training: Muon, a warm-up, a constant learning rate, averages.

    Example:

    ```python
    recipe = keras_elf.models.TrainingRecipe.from_preset("elf_b_owt", batch_size=64)
    elf.compile(optimizer=recipe)
    elf.fit(dataset, epochs=recipe.epochs)
    ```

    Args:
        epochs: int.
        num_rows: int. Rows of the training set, which set the length of an epoch.
        warmup_steps: int or `None`. Optimizer steps of linear warm-up.
        warmup_epochs: float or `None`. The same in epochs; one of the two is given.
        batch_size: int. Rows in an optimizer step, over all devices. Defaults to `512`.
        base_learning_rate: float. Learning rate at batch 256; it grows with the batch.
            Defaults to `1e-3`.
        ema_momentum: float. Decay of the averaged weights, a step. Defaults to `0.9999`.
        global_clipnorm: float. Largest norm of the whole gradient. Defaults to `1.0`.
        dataset: str. Hub name of the published training set. Defaults to `""`.
        rows: str. How its texts are put into rows. Defaults to `""`.

    Raises:
        ValueError: for numbers out of range, or not exactly one of the two warm-ups.

    Source: ELF, arXiv 2605.10938 (training hyper-parameters).
    """

    epochs: int
    num_rows: int
    warmup_steps: int | None = None
    warmup_epochs: float | None = None
    batch_size: int = 512
    base_learning_rate: float = 1e-3
    ema_momentum: float = 0.9999
    global_clipnorm: float = 1.0
    dataset: str = ""
    rows: str = ""

    def __post_init__(self):
        for name in ("epochs", "num_rows", "batch_size"):
            checks.integer(name, getattr(self, name), minimum=1)
        for name in ("base_learning_rate", "global_clipnorm"):
            checks.number(name, getattr(self, name), minimum=0)
        checks.probability("ema_momentum", self.ema_momentum)
        if (self.warmup_steps is None) == (self.warmup_epochs is None):
            raise ValueError(
                "One of `warmup_steps` and `warmup_epochs` must be given. Received: "
                f"warmup_steps={self.warmup_steps}, warmup_epochs={self.warmup_epochs}"
            )
        if self.warmup_steps is not None:
            checks.integer("warmup_steps", self.warmup_steps, minimum=0)
        else:
            checks.number("warmup_epochs", self.warmup_epochs, minimum=0)

    @classmethod
    def from_preset(cls, name, **overrides):
        """The recipe of a published model.

        Args:
            name: str. A preset's name, such as `"elf_b_owt"`.
            **overrides: fields that replace the published ones.

        Raises:
            ValueError: for another name, or a preset that was not trained by this recipe.
            TypeError: for unknown fields.
        """
        path = bundled.directory(name) / "recipe.json"
        if not path.is_file():
            how = bundled.information(name).get("distillation")
            reason = f" It was distilled: {how}." if how else ""
            raise ValueError(f"The preset {name!r} has no training recipe.{reason}")
        fields = {field.name for field in dataclasses.fields(cls)}
        checks.no_unknown("TrainingRecipe", overrides, fields)
        published = json.loads(path.read_text(encoding="utf-8"))
        for one, other in (("warmup_steps", "warmup_epochs"), ("warmup_epochs", "warmup_steps")):
            if one in overrides:
                published.pop(other, None)
        return cls(**{**published, **overrides})

    @property
    def learning_rate(self):
        """float. The peak: 2e-3 at the published batch of 512."""
        return scaled_learning_rate(self.batch_size, self.base_learning_rate)

    @property
    def steps_per_epoch(self):
        """int. Full batches in an epoch."""
        return max(1, self.num_rows // self.batch_size)

    def optimizer(self):
        """A new `keras_elf.optimizers.Muon` as the recipe has it."""
        warmup = self.warmup_steps
        if warmup is None:
            warmup = round(self.warmup_epochs * self.steps_per_epoch)
        return Muon(
            WarmupSchedule(self.learning_rate, warmup),
            global_clipnorm=self.global_clipnorm,
            ema_momentum=self.ema_momentum,
        )
