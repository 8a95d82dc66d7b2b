"""How what an objective reports becomes Keras's metrics."""

import keras
from keras import ops

from keras_elf.models.step_report import StepReport
from keras_elf.objectives import check_parts, check_report


class MeasuredMean(keras.metrics.Metric):
    """Mean over what was measured; NaN while nothing was, which is not a measurement of 0.

    Args:
        name: string.
    """

    def __init__(self, name):
        super().__init__(dtype="float32", name=name)
        self.total = self.add_variable((), "zeros", dtype="float32", name="total")
        self.count = self.add_variable((), "zeros", dtype="float32", name="count")

    def update_state(self, mean, weight):
        """Add a batch: its mean, and how much it was measured."""
        mean, weight = ops.cast(mean, "float32"), ops.cast(weight, "float32")
        self.total.assign_add(ops.where(weight > 0, mean * weight, 0.0))
        self.count.assign_add(weight)

    def result(self):
        total, count = ops.convert_to_tensor(self.total), ops.convert_to_tensor(self.count)
        return ops.where(count > 0, total / ops.where(count > 0, count, 1.0), float("nan"))

    def empty(self):
        """Whether nothing was measured since the last reset; reads from the device."""
        return float(ops.convert_to_numpy(self.count)) == 0


class ReportMetrics:
    """A metric for each name that an objective reports, and the last step's report.

    Plain Python to Keras, so that a model file holds none of it.

    Args:
        objective: see `keras_elf.objectives.check_parts`.
    """

    def __init__(self, objective):
        self.names = tuple(objective.report_names)
        self.means = [MeasuredMean(name) for name in self.names]
        self.step_report = StepReport(self.names)
        self.evaluation_loss = MeasuredMean("evaluation_loss")

    def all(self):
        """Metrics in the order of their state."""
        return [*self.means, self.step_report, self.evaluation_loss]


class Reporting:
    """Mixin of `ELFGenerator`: its objective, and the metrics that follow from it."""

    @property
    def objective(self):
        """What makes the loss; another one may be set at any time."""
        return self._objective

    @objective.setter
    def objective(self, objective):
        check_parts(objective)
        self._objective = objective
        report = getattr(self, "report_metrics", None)
        if report is None or report.names != tuple(objective.report_names):
            self.report_metrics = ReportMetrics(objective)
        # Compiled steps hold the objective that they were made with.
        self.train_function = self.test_function = None

    @property
    def step_report(self):
        """`StepReport` of the last training step."""
        return self.report_metrics.step_report

    @property
    def metrics(self):
        """As in Keras, with a metric for each entry of the objective's report."""
        # Keras asks while it builds the model, too.
        report = getattr(self, "report_metrics", None)
        return [*super().metrics, *(report.all() if report is not None else ())]

    def record(self, report, positions, tokens, training):
        """Keep what an objective reported of a batch.

        Args:
            report: dict as the objective returned it.
            positions: float scalar. Number of positions that count.
            tokens: int. Positions in the batch.
            training: bool.
        """
        check_report(self.objective, report)
        for metric in self.report_metrics.means:
            metric.update_state(*report[metric.name])
        if training:
            self.step_report.update_state(report, tokens)
        else:
            self.report_metrics.evaluation_loss.update_state(report["loss"], positions)

    def get_metrics_result(self):
        """As in Keras; the loss of an evaluation is a mean over positions, not over batches.

        Batches of an evaluation differ in how many positions count, and how the rows are cut
        into batches must not show.
        """
        results = super().get_metrics_result()
        evaluated = self.report_metrics.evaluation_loss
        loss = results.get("loss")
        found = results.pop(evaluated.name)
        if loss is not None:
            count = ops.convert_to_tensor(evaluated.count)
            results["loss"] = ops.where(count > 0, found, loss)
        return results

    def _get_metrics_result_or_logs(self, logs):
        # Keras calls this for the logs of an epoch and of an evaluation, outside of the step.
        logs = super()._get_metrics_result_or_logs(logs)
        unmeasured = [m.name for m in self.report_metrics.means if m.name in logs and m.empty()]
        return {name: value for name, value in logs.items() if name not in unmeasured}
