"""What the last training step looked like, kept on the device until somebody asks."""

import keras
from keras import ops

NAMES = ("denoise_loss", "decode_loss")


@keras.saving.register_keras_serializable(package="keras_elf")
class StepReport(keras.metrics.Metric):
    """Losses of the last training step and the first step at which one was not finite.

    Keras reports means since the beginning of the epoch. Callbacks that look at a run every n
    steps need the step's own losses, and which step of the n went wrong first; reading either
    at every step would make the device wait for the host. This metric adds nothing to the
    logs, and survives the resets between epochs.

    Args:
        names: tuple of the objective's `report_names`. Defaults to the two branches.
        name: string. Defaults to `"step_report"`.
    """

    def __init__(self, names=NAMES, name="step_report"):
        super().__init__(dtype="float32", name=name)
        self.names = tuple(names)
        # The loss, each mean, how much each was measured, and the tokens.
        size = 2 * len(self.names) + 2
        self.values = self.add_variable((size,), "zeros", dtype="float32", name="values")
        # "int" is the integer type that each backend keeps on the accelerator.
        self.steps = self.add_variable((), "zeros", dtype="int", name="steps")
        self.first_nonfinite = self.add_variable(
            (1 + len(self.names),), "zeros", dtype="int", name="first_nonfinite"
        )

    def update_state(self, report, tokens):
        """Keep one step's report.

        Args:
            report: dict as an objective returns it.
            tokens: int. Positions in the batch.
        """
        pairs = [report[name] for name in self.names]
        values = [report["loss"], *(m for m, _ in pairs), *(weight for _, weight in pairs), tokens]
        values = ops.stop_gradient(ops.stack([ops.cast(v, "float32") for v in values]))
        self.values.assign(values)
        steps = self.steps + 1
        self.steps.assign(steps)
        new = ops.logical_not(ops.isfinite(values[: 1 + len(self.names)]))
        first = self.first_nonfinite.value
        new = ops.logical_and(new, ops.equal(first, 0))
        self.first_nonfinite.assign(ops.where(new, steps, first))

    def result(self):
        return {}

    def reset_state(self):
        """Does nothing: the report is of a step, and Keras calls this once an epoch."""

    def read(self):
        """The report as a dict of Python objects.

        `loss`, `tokens` and each name that was measured in the step; `weights`, a dict of how
        much each name was measured; `steps`; and `first_nonfinite`, a dict from name to the
        number of the first step that was not finite, 0 for none.
        """
        loss, *values, tokens = ops.convert_to_numpy(self.values).tolist()
        weights = dict(zip(self.names, values[len(self.names) :], strict=True))
        means = zip(self.names, values[: len(self.names)], strict=True)
        first = ops.convert_to_numpy(self.first_nonfinite).tolist()
        return {
            "loss": loss,
            **{name: mean for name, mean in means if weights[name] != 0},
            "tokens": tokens,
            "weights": weights,
            "steps": int(ops.convert_to_numpy(self.steps)),
            "first_nonfinite": dict(zip(("loss", *self.names), first, strict=True)),
        }

    def save_own_variables(self, store):
        """Saves nothing: a saved model needs no report."""

    def load_own_variables(self, store):
        """Nothing, as nothing was saved."""

    def get_config(self):
        return {"names": list(self.names), "name": self.name}
