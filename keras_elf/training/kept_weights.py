"""The weights that metrics looked at, in the files that Keras writes of a model."""

import warnings
import weakref

import keras
import numpy as np
from keras import ops

from keras_elf.training import averages


def values_in_use(model, use_averages=True):
    """Weights of a model as `evaluate` and `generate` look at them.

    Args:
        model: a `keras.Model`.
        use_averages: as in `averages_in_use`. Defaults to `True`.

    Returns:
        list of NumPy arrays in the order of `model.weights`, copies of their own.
    """
    averages.synchronise(model)
    pairs = [] if averages.within_averages(model) else averages.averages_in_use(model, use_averages)
    found = {id(variable): average for variable, average in pairs}
    return [_value(found.get(id(v), v), v.dtype) for v in model.weights]


class ValidatedWeights(keras.Operation):
    """The averages of a model in its `.keras` and `.weights.h5` files.

    Keras writes averages into the state of the optimizer. Without that optimizer, or beside
    another one, they would not be found, and the model would be another one than that which
    was validated. An attribute of this class, whose name sorts behind `optimizer`, writes them
    once more, and where the optimizer did not take its state from the file, reads them: they
    become the weights of the model.

    Args:
        model: the `keras.Model` that has it as an attribute.
    """

    def __init__(self, model):
        super().__init__(name="validated_weights")
        self._model = weakref.ref(model)  # A reference of its own would close a circle.

    def call(self):
        """Nothing is computed: Keras saves what is an `Operation`."""

    def save_own_variables(self, store):
        """Write averages that are in use, under their variables' places in `model.weights`."""
        model = self._model()
        if averages.within_averages(model):
            return  # They stand in the place of the weights.
        places = {id(v): place for place, v in enumerate(model.weights)}
        for variable, average in averages.averages_in_use(model):
            store[str(places[id(variable)])] = _value(average, average.dtype)

    def load_own_variables(self, store):
        """Read them where nobody else has; averages that knew other weights start anew."""
        model = self._model()
        optimizer = getattr(model, "optimizer", None)
        if getattr(optimizer, "state_was_loaded", False):
            optimizer.state_was_loaded = False
            return
        weights, kept = model.weights, {int(name): store[name] for name in store.keys()}
        if all(p < len(weights) and weights[p].shape == a.shape for p, a in kept.items()):
            for place, array in kept.items():
                weights[place].assign(ops.cast(np.array(array), weights[place].dtype))
        else:
            warnings.warn(
                "The file holds averages for other layers than the model has (LoRA, quantisation), "
                "so its raw weights were loaded. To keep averages over such a change, use "
                "`save_to_preset`.",
                UserWarning,
                stacklevel=2,
            )
        averages.restart_averages(model)


def averages_to_pass_on(model):
    """`(pairs, share_of_start)` of the optimizer that a model is compiled with now."""
    share = averages.trained_share(model)
    return (model.optimizer.average_pairs() if share else []), 1.0 - share


def pass_on_averages(pairs, share_of_start, model):
    """Hand averages of an earlier optimizer to that of a model that was compiled anew.

    Raw weights go on as they are. Where a variable is no longer trained, its average becomes
    its value.

    Args:
        pairs: list of `(variable, average)` of the optimizer before.
        share_of_start: float. Its `share_of_start`.
        model: a compiled `keras.Model`.
    """
    # Looking at all variables has an encoder loaded that may never be needed.
    if share_of_start == 1.0 or not pairs:
        return
    present = {id(v) for v in model.variables}
    pairs = [pair for pair in pairs if id(pair[0]) in present]
    if not pairs:
        return
    trained = {id(v) for v in model.trainable_variables}
    in_use = 1.0 - share_of_start >= averages.MINIMUM_TRAINED_SHARE
    optimizer, new = model.optimizer, {}
    if hasattr(optimizer, "average_pairs") and optimizer.use_ema:
        if not optimizer.built:
            optimizer.build(model.trainable_variables)
        new = {id(variable): average for variable, average in optimizer.average_pairs()}
        optimizer.share_of_start.assign(share_of_start)
    elif in_use:
        warnings.warn(
            "The optimizer before kept averages, which `evaluate`, `generate` and "
            f"`save_to_preset` used; this one ({type(optimizer).__name__}) keeps none, so that "
            "the raw weights are used from here on. To go on from the averages, call "
            "`elf.set_weights(elf.get_weights())` before `compile`.",
            UserWarning,
            stacklevel=4,
        )
    for variable, average in pairs:
        if id(variable) in new:
            new[id(variable)].assign(ops.copy(average.value))
        elif in_use and id(variable) not in trained:
            variable.assign(ops.cast(ops.copy(average.value), variable.dtype))


def _value(variable, dtype):
    # A copy: on PyTorch an array may share the memory of its variable, which goes on changing.
    return np.array(ops.convert_to_numpy(ops.cast(variable.value, dtype)))
