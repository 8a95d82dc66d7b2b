"""Weights in and out of a model: what is looked at is what is kept."""

from keras_elf.training import kept_weights
from keras_elf.training.averages import restart_averages, synchronise


class Weights:
    """Mixin of `ELFGenerator`: Keras's access to weights, which knows of averages."""

    def get_weights(self, use_averages=True):
        """Weights that `evaluate` and `generate` look at, as a list of NumPy arrays.

        Args:
            use_averages: `True`, `False` or `"always"`, as in `generate`. `False` gives the raw
                weights, with which training goes on. Defaults to `True`.
        """
        return kept_weights.values_in_use(self, use_averages)

    def set_weights(self, weights):
        """As in Keras; averages, which knew other weights, start again from these.

        In the middle of `fit` training goes on from them.
        """
        synchronise(self)
        super().set_weights(weights)
        restart_averages(self)

    def save_own_variables(self, store):
        # Keras calls this first of all when it writes a file.
        synchronise(self)
        super().save_own_variables(store)

    def load_own_variables(self, store):
        # Keras calls this first of all when it reads a file.
        synchronise(self)
        if hasattr(self.optimizer, "state_was_loaded"):
            self.optimizer.state_was_loaded = False
        super().load_own_variables(store)
