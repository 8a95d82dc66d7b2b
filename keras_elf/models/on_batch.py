"""`predict` and the methods that take a single batch."""

import keras

from keras_elf.training.state_guard import state_given_back


class OnBatch:
    """Mixin of `ELFGenerator`: Keras's own methods, on the data that `fit` takes."""

    def train_on_batch(self, x, **kwargs):
        """One step on a batch, as `keras.Model.train_on_batch`."""
        with state_given_back(self):
            return keras.Model.train_on_batch(self, x, **kwargs)

    def test_on_batch(self, x, **kwargs):
        """Losses of a batch, as `keras.Model.test_on_batch`, of the weights as they are."""
        with state_given_back(self):
            return keras.Model.test_on_batch(self, x, **kwargs)

    def predict_on_batch(self, x):
        """Clean latents of a batch, as `keras.Model.predict_on_batch`."""
        with state_given_back(self):
            return keras.Model.predict_on_batch(self, x)

    def predict(self, x, batch_size=None, **kwargs):
        """The graph's outputs (`clean`, `dropped`), as `keras.Model.predict`."""
        with state_given_back(self):
            return keras.Model.predict(self, x, batch_size=batch_size, **kwargs)
