"""`predict` and the methods that take a single batch."""

import keras

from keras_elf.training import inputs
from keras_elf.training.arguments import (
    refuse_float16,
    refuse_targets,
    warn_of_unfrozen_encoder,
)
from keras_elf.training.batch_checks import BatchCheck
from keras_elf.training.checked_data import checked, own_errors
from keras_elf.training.state_guard import state_given_back
from keras_elf.training.turns import turns


class OnBatch:
    """Mixin of `ELFGenerator`: Keras's own methods, on the data that `fit` takes.

    Batches are text, ids or a dict of arrays, checked as in `fit`; what does not fit the model
    raises `ValueError`.
    """

    def train_on_batch(self, x, y=None, sample_weight=None, **kwargs):
        """One step on a batch, as `keras.Model.train_on_batch`."""
        refuse_targets({"y": y, **kwargs})
        refuse_float16(self)
        warn_of_unfrozen_encoder(self)
        x, sample_weight = _one_batch(self, x, sample_weight)
        with state_given_back(self):
            return keras.Model.train_on_batch(self, x, sample_weight=sample_weight, **kwargs)

    def test_on_batch(self, x, y=None, sample_weight=None, **kwargs):
        """Losses of a batch, as `keras.Model.test_on_batch`, of the weights as they are."""
        refuse_targets({"y": y})
        x, sample_weight = _one_batch(self, x, sample_weight)
        with state_given_back(self):
            return keras.Model.test_on_batch(self, x, sample_weight=sample_weight, **kwargs)

    def predict_on_batch(self, x):
        """`clean` latents and `dropped` of a batch, as `keras.Model.predict_on_batch`."""
        x, _ = _one_batch(self, x)
        with state_given_back(self):
            return keras.Model.predict_on_batch(self, x)

    def predict(self, x, batch_size=None, **kwargs):
        """`clean` latents and `dropped` of all rows, as `keras.Model.predict`.

        Args:
            x: data in the forms of `fit`.
            batch_size: int. Rows a step, for `x` in memory. Defaults to `32`.
            **kwargs: as in `keras.Model.predict`.
        """
        inputs.refuse_text(x)
        check = BatchCheck.of(self)
        if inputs.is_materialised(x):
            x, _ = _one_batch(self, x)
            check = None
        else:
            x = checked(check, x)
        # On JAX the values leave the variables meanwhile.
        with own_errors(check), turns(self).exchanging(), state_given_back(self):
            return keras.Model.predict(self, x, batch_size=batch_size, **kwargs)


def _one_batch(model, x, sample_weight=None):
    if isinstance(x, str):
        x = [x]
    x, _, weight = (*BatchCheck.of(model)((x, None, sample_weight)), None, None)[:3]
    return x, weight
