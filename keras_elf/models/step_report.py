"""What the last training step looked like, kept on the device until somebody asks."""

import keras
from keras import ops

VALUES = ("loss", "denoise_loss", "decode_loss", "denoise_count", "decode_count", "tokens")
WATCHED = VALUES[:3]


@keras.saving.register_keras_serializable(package="keras_elf")
class StepReport(keras.metrics.Metric):
    """Losses of the last training step and the first step at which one was not finite.

    Keras reports means since the beginning of the epoch. Callbacks that look at a run every n
    steps need the step's own losses, and which step of the n went wrong first; reading either
    at every step would make the device wait for the host. This metric adds nothing to the
    logs, and survives the resets between epochs.

    Args:
        name: string. Defaults to `"step_report"`.
    """

    def __init__(self, name="step_report"):
        super().__init__(dtype="float32", name=name)
        self.values = self.add_variable((len(VALUES),), "zeros", dtype="float32", name="values")
        # "int" is the integer type that each backend keeps on the accelerator.
        self.steps = self.add_variable((), "zeros", dtype="int", name="steps")
        self.first_nonfinite = self.add_variable(
            (len(WATCHED),), "zeros", dtype="int", name="first_nonfinite"
        )

    def update_state(self, report, tokens):
        """Keep one step's report.

        Args:
            report: dict of float32 scalars, as `ELFObjective` returns it.
            tokens: int. Positions in the batch.
        """
        values = [ops.cast(report[name], "float32") for name in VALUES[:-1]]
        values = ops.stop_gradient(ops.stack([*values, ops.cast(tokens, "float32")]))
        self.values.assign(values)
        steps = self.steps + 1
        self.steps.assign(steps)
        new = ops.logical_not(ops.isfinite(values[: len(WATCHED)]))
        first = self.first_nonfinite.value
        new = ops.logical_and(new, ops.equal(first, 0))
        self.first_nonfinite.assign(ops.where(new, steps, first))

    def result(self):
        return {}

    def reset_state(self):
        """Nothing: the report is of a step and not of an epoch."""

    def read(self):
        """The report as a dict of Python numbers, with `steps` and `first_nonfinite` (a dict
        from name to the number of the first step that was not finite, 0 for none)."""
        values = dict(zip(VALUES, ops.convert_to_numpy(self.values).tolist(), strict=True))
        first = ops.convert_to_numpy(self.first_nonfinite).tolist()
        return {
            **values,
            "steps": int(ops.convert_to_numpy(self.steps)),
            "first_nonfinite": dict(zip(WATCHED, first, strict=True)),
        }

    def save_own_variables(self, store):
        """Nothing: a saved model needs no report."""

    def load_own_variables(self, store):
        """Nothing, as nothing was saved."""

    def get_config(self):
        return {"name": self.name}
