"""What an objective reports, or adds to its loss, besides its two branches."""

import keras
from keras import ops

from keras_elf import checks
from keras_elf.configurable import Configurable
from keras_elf.objectives import losses


class Term(Configurable):
    """Base of further entries of the report.

    ```python
    @keras.saving.register_keras_serializable(package="my_package")
    class TokenAccuracy(Term):
        names = ("accuracy",)

        def __call__(self, denoise, decode):
            right = ops.equal(ops.argmax(decode["logits"], axis=-1), decode["token_ids"])
            return {"accuracy": mean_of(ops.cast(right, "float32"), decode["counts"])}
    ```

    Attributes:
        names: tuple of the names it reports.
        loss_weight: float. Factor with which its means are added to the loss. Defaults to
            `0.0`: they are only shown.
    """

    names = ()
    loss_weight = 0.0

    def __call__(self, denoise, decode):
        """Measure a batch.

        Args:
            denoise: dict of the denoise branch: `error` (rows, length), weighted; `counts`
                (rows, length), 0 where nothing counts; `t` (rows,); `predicted` and `clean`
                latents and the noisy `z` (rows, length, width).
            decode: dict of the decode branch: `entropy` (rows, length) in nats; `counts`;
                `logits` (rows, length, vocabulary); `token_ids` (rows, length).

        Returns:
            dict from each of `names` to a pair of float32 scalars, the mean and how much was
            measured; see `mean_of`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `__call__`")


def mean_of(values, weights):
    """`(mean, sum of the weights)`, float32 scalars, as a report has them.

    Args:
        values, weights: tensors `(rows, length)`.
    """
    total, count = losses.masked_sum(values, weights)
    return losses.ratio(total, count), count


@keras.saving.register_keras_serializable(package="keras_elf")
class TimeBins(Term):
    """The denoising loss in each of some equal parts of [0, 1], by the row's time.

    Args:
        number: int >= 1. Number of parts. Defaults to `10`; reported as
            `denoise_loss_t0.0-0.1` and so on.

    Raises:
        ValueError: for a number below 1.
    """

    def __init__(self, number=10):
        self.number = checks.integer("number", number, minimum=1)

    @property
    def names(self):
        digits = max(1, len(str(self.number - 1)))
        edges = [f"{i / self.number:.{digits}f}" for i in range(self.number + 1)]
        return tuple(f"denoise_loss_t{a}-{b}" for a, b in zip(edges, edges[1:], strict=False))

    def __call__(self, denoise, decode):
        bins = ops.floor(denoise["t"] * self.number)
        bins = ops.minimum(bins, self.number - 1)
        return {
            name: mean_of(
                denoise["error"],
                denoise["counts"] * ops.cast(ops.equal(bins, i), "float32")[:, None],
            )
            for i, name in enumerate(self.names)
        }


def measure(terms, denoise, decode):
    """`(what the terms add to the loss, their entries of the report)`."""
    added, report = 0.0, {}
    for term in terms:
        found = term(denoise, decode)
        if term.loss_weight:
            added = added + term.loss_weight * sum(found[name][0] for name in term.names)
        report.update(found)
    return added, report
