"""`fit` and `evaluate`: Keras's own, on text and ids, with what suits ELF around them."""

import keras

from keras_elf.models.lora import check_optimizer
from keras_elf.training import FitRun, inputs, run_checks, running
from keras_elf.training.arguments import (
    check_counts,
    refuse_float16,
    refuse_for_streams,
    refuse_targets,
    warn_of_unfrozen_encoder,
)
from keras_elf.training.averages import averaged_weights, told_after
from keras_elf.training.batch_checks import BatchCheck
from keras_elf.training.callbacks import ReconstructionAccuracy
from keras_elf.training.checked_data import checked, own_errors
from keras_elf.training.fit_data import FitData
from keras_elf.training.run_setup import prepare_optimizer
from keras_elf.training.state_guard import KeptState, state_given_back

EVALUATION_SEED = 0


class Fitting(KeptState):
    """Mixin of `ELFGenerator`: `fit` and `evaluate`."""

    # Calls of `fit` go on through the orders of the rows, as the epochs of one call do.
    _data_epoch = 0

    def fit(self, x=None, *args, batch_size=None, validation_data=None, shuffle=True, **kwargs):
        """Train.

        Args:
            x: text (list of str, dict of `"target"` and `"condition"`, and of what the network's
                `signals` name, such as `"label"`), token ids
                (lists, an int array `(rows, length)`, a dict of arrays), or any dataset that
                Keras takes whose batches are dicts with `token_ids` and optionally
                `is_cond`, `is_valid`, or tuples `(dict, None, sample_weight)`; a
                generator and a `PyDataset` may also give batches of text. Each batch is
                checked as data in memory are. Text and ids in memory are shuffled each epoch into
                batches of one size; rows that fill no batch wait for the next epoch.
            batch_size: int. Rows a step, for `x` in memory. Defaults to a power of two near
                half the root of the number of rows, from 32 to 128.
            validation_data: in the forms of `x`. Evaluated as `evaluate` does: with the averaged
                weights, once at least half of them comes from training steps. What was
                validated is what `get_weights` gives and Keras's callbacks keep and restore.
            shuffle: bool. Whether `x` in memory is shuffled. Defaults to `True`.
            validation_split: float. Last share of `x` in memory to validate on.
            sample_weight: array `(rows,)`. Weights of the rows of `x` in memory.
            **kwargs: as in `keras.Model.fit` (epochs, callbacks, verbose, ...).

        Returns:
            `keras.callbacks.History` with `loss`, `denoise_loss` (squared velocity) and
            `decode_loss` (nats a token); after `compile()` without an optimizer and with `x` in
            memory also `reconstruction_accuracy`, the share of the tokens of a few rows that are
            read back from their clean latents (see `keras_elf.callbacks.ReconstructionAccuracy`).

        Raises:
            ValueError: for data that does not fit the model, under `mixed_float16`, or with
                `keras.callbacks.SwapEMAWeights` beside an optimizer that keeps averages.
        """
        if args:
            raise TypeError("`fit` takes only `x` by position: the text is its own target.")
        refuse_targets(kwargs)
        check_counts(kwargs)
        refuse_float16(self)
        warn_of_unfrozen_encoder(self)
        data = FitData(self, x, batch_size, validation_data, shuffle, kwargs, self._data_epoch)
        if data.conditional is not None:
            # Once learned, a condition is not unlearned at once.
            self.conditional = bool(self.conditional) or data.conditional
        check_optimizer(self)
        prepare_optimizer(self, data.x, data.settings)
        run = FitRun(self, data.x, data.settings.pop("callbacks", None), data.settings)
        run_checks.refuse_swapping(self, run.callbacks)
        if self.automatic_recipe and data.sample and run.find(ReconstructionAccuracy) is None:
            # First: the log and others read what it adds.
            run.callbacks.insert(0, ReconstructionAccuracy(data.sample))
        accumulation = run_checks.AccumulationWatch(self, data.x, data.settings)

        def train(x, **settings):
            x = x if data.check is None else checked(data.check, x)
            with own_errors(data.check, data.validation_check):
                # keras_hub's own `fit` would map the preprocessor over the data as a graph.
                return keras.Model.fit(self, x, **settings)

        try:
            with told_after(self):
                history = run.fit(train)
        finally:
            self._data_epoch = data.next_epoch(self._data_epoch)
        accumulation.after()
        return history

    def evaluate(self, x=None, *args, batch_size=None, **kwargs):
        """Losses of both branches under fixed draws, with the averaged weights.

        Raw weights are used where less than half of the averages comes from training steps.

        Args:
            x: data in the forms of `fit`.
            batch_size: int. Rows a step, for `x` in memory. Defaults to `32`.
            **kwargs: as in `keras.Model.evaluate`, and `use_averages` (`True`,
                `False` or `"always"`, as in `generate`; default `True`).

        Returns:
            As `keras.Model.evaluate`: with `return_dict=True` a dict of `loss`,
            `denoise_loss` and `decode_loss`.
        """
        if args:
            raise TypeError("`evaluate` takes only `x` by position: the text is its own target.")
        run = running(kwargs.get("callbacks"))  # Where this is `fit`'s validation.
        if run is not None and not run.begin_validation():
            return {}  # Somebody waits for `fit` to stop.
        if run is None:
            run_checks.refuse_swapping(self, kwargs.get("callbacks"))
        refuse_targets(kwargs)
        inputs.refuse_text(x)
        use_averages, check = kwargs.pop("use_averages", True), None
        if inputs.is_materialised(x):
            x = inputs.with_weights(self, x, kwargs.pop("sample_weight", None))
            x = inputs.evaluation_batches(self, x, batch_size)
            batch_size = None
        elif not kwargs.get("_use_cached_eval_dataset"):
            refuse_for_streams(kwargs)
            check = BatchCheck.of(self)
            x = checked(check, x)
        with own_errors(check), averaged_weights(self, use_averages), state_given_back(self):
            state = self.evaluation_seed_generator.state
            state.assign(keras.random.SeedGenerator(EVALUATION_SEED).state)
            return keras.Model.evaluate(self, x, batch_size=batch_size, **kwargs)
