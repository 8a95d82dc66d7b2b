"""`compile`, `fit` and `evaluate`: Keras's own, with ELF's defaults and forms of data."""

import keras

from keras_elf.data import ResumableDataset
from keras_elf.models.lora import check_optimizer
from keras_elf.models.on_batch import OnBatch
from keras_elf.optimizers import AdamW, Muon, WarmupSchedule
from keras_elf.training import (
    FitRun,
    TrainingRecipe,
    batch_size_of,
    batches_in_run,
    inputs,
    kept_weights,
    run_checks,
    running,
    set_up_run,
)
from keras_elf.training.arguments import (
    refuse_float16,
    refuse_for_streams,
    refuse_targets,
    warn_of_unfrozen_encoder,
)
from keras_elf.training.averages import (
    adopt_averages,
    averaged_weights,
    restart_averages,
    synchronise,
    trained_share,
)
from keras_elf.training.batch_checks import BatchCheck
from keras_elf.training.checked_data import checked, own_errors
from keras_elf.training.state_guard import KeptState, state_given_back

EVALUATION_SEED = 0


class Training(OnBatch, KeptState):
    """Mixin of `ELFGenerator`: everything around the training step."""

    _data_epoch = 0
    _automatic_recipe = False
    _in_fit = False

    def compile(self, optimizer="auto", loss=None, *, metrics=None, **kwargs):
        """Configure training.

        Averages that an optimizer before has kept go on in the new one, and the weights as they
        are: a second `compile` for a lower rate changes nothing of what `evaluate` finds.

        Args:
            optimizer: `"auto"` (default) for Muon with the rates and averages that suit the
                run, by `TrainingRecipe.for_run`: `fit` sets them when it knows how many steps
                it takes, and sets them anew, keeping the averages, at each later call.
                `"published"` or `"muon"` for the published recipe, made for 100,000 steps
                (Muon at 2e-3, the value at batch 512, after 5,000 steps of warm-up;
                gradients clipped at norm 1; weights averaged with 0.9999). A
                `TrainingRecipe`, for that of a preset or one's own, whose `objective`, if it
                has one, becomes the model's. `"adamw"` for the ablation's AdamW, or an
                optimizer. `keras_elf.optimizers` keep averages that `generate`, `evaluate`,
                `get_weights` and `save_to_preset` use, once at least half of them comes from
                training steps (`keras_elf.training.averages`).
            loss: must be `None`: the objective makes the loss.
            metrics: must be `None`: both branches' losses are reported.
            **kwargs: as in `keras.Model.compile`.

        Raises:
            ValueError: if a loss or metrics are given.
        """
        if loss is not None or metrics is not None:
            raise ValueError(
                "`loss` and `metrics` must be None: `ELFGenerator.objective` makes the loss and "
                f"reports both branches. Received: loss={loss!r}, metrics={metrics!r}"
            )
        self._automatic_recipe = isinstance(optimizer, str) and optimizer == "auto"
        if isinstance(optimizer, TrainingRecipe):
            if optimizer.objective is not None:
                self.objective = optimizer.objective
            optimizer = optimizer.optimizer()
        elif optimizer in ("auto", "published", "muon"):
            optimizer = Muon(WarmupSchedule(2e-3, warmup_steps=5000))
        elif optimizer == "adamw":
            optimizer = AdamW(WarmupSchedule(1e-3, warmup_steps=5000))
        self.reset_generation()
        before, share = self._kept_averages()
        super().compile(optimizer=optimizer, loss=None, metrics=None, **kwargs)
        self._told_of_short_run = False
        kept_weights.pass_on_averages(before, share, self)

    def get_compile_config(self):
        config = super().get_compile_config()
        # A schedule that has run out would train a loaded model at rate 0.
        return {**config, "optimizer": "auto"} if config and self._automatic_recipe else config

    def compile_from_config(self, config):
        # Keras leaves a model with a `compile` of its own uncompiled when it is loaded, and
        # drops the optimizer's state, averages included, with no more than a warning.
        config = keras.saving.deserialize_keras_object(config)
        # What the saving backend made of "auto" need not suit the one that loads.
        config["jit_compile"] = "auto" if config.get("jit_compile") else False
        self.compile(**config)
        if self.optimizer is not None:
            self.optimizer.build(self.trainable_variables)

    def fit(self, x=None, *args, batch_size=None, validation_data=None, shuffle=True, **kwargs):
        """Train.

        Args:
            x: text (list of str, dict of `"target"` and `"condition"`), token ids
                (lists, an int array `(rows, length)`, a dict of arrays), or any dataset that
                Keras takes whose batches are dicts with `token_ids` and optionally
                `is_cond`, `is_valid`, or tuples `(dict, None, sample_weight)`; a
                generator and a `PyDataset` may also give batches of text. Each batch is
                checked as data in memory are. Text and ids in memory are shuffled each epoch into
                batches of one size; rows that fill no batch wait for the next epoch.
            batch_size: int. Rows a step, for `x` in memory. Defaults to a power of two near
                the root of the number of rows, from 32 to 128.
            validation_data: in the forms of `x`. Evaluated as `evaluate` does: with the averaged
                weights, once at least half of them comes from training steps. What was
                validated is what `get_weights` gives and Keras's callbacks keep and restore.
            shuffle: bool. Whether `x` in memory is shuffled. Defaults to `True`.
            validation_split: float. Last share of `x` in memory to validate on.
            sample_weight: array `(rows,)`. Weights of the rows of `x` in memory.
            **kwargs: as in `keras.Model.fit` (epochs, callbacks, verbose, ...).

        Returns:
            `keras.callbacks.History` with `loss`, `denoise_loss` (squared velocity) and
            `decode_loss` (nats a token).

        Raises:
            ValueError: for data that does not fit the model, under `mixed_float16`, or with
                `keras.callbacks.SwapEMAWeights` beside an optimizer that keeps averages.
        """
        if isinstance(x, str):
            raise ValueError(
                "`x` must be a list of texts, not a single str: for a file pass its lines. "
                f"Received: {x!r:.80}"
            )
        if args:
            raise TypeError("`fit` takes only `x` by position: the text is its own target.")
        refuse_targets(kwargs)
        refuse_float16(self)
        warn_of_unfrozen_encoder(self)
        inputs.refuse_text(x)
        if not inputs.is_materialised(x):
            refuse_for_streams(kwargs)
        x = inputs.with_weights(self, x, kwargs.pop("sample_weight", None))
        split = kwargs.pop("validation_split", None)
        if split:
            if validation_data is not None:
                raise ValueError(
                    "Only one of `validation_split` and `validation_data` may be given. Received "
                    f"validation_split={split} and validation_data"
                )
            x, validation_data = inputs.split_rows(inputs.to_rows(self, x), split)
        validation_check = None
        if inputs.is_materialised(validation_data):
            size = kwargs.pop("validation_batch_size", None) or batch_size
            validation_data = inputs.evaluation_batches(self, validation_data, size)
        elif validation_data is not None:
            inputs.refuse_text(validation_data)
            validation_check = BatchCheck.of(self)
            validation_data = checked(validation_check, validation_data)
        served = check = None
        if not inputs.is_materialised(x):
            check = BatchCheck.of(self)
            shuffle = shuffle and isinstance(x, keras.utils.PyDataset)  # Others have an order.
        else:
            seed = 0 if self.seed is None else self.seed
            x = inputs.training_batches(self, x, batch_size, seed, shuffle)
            # Calls of `fit` go on through the orders of the rows, as the epochs of one call do.
            x.skip_to(max(self._data_epoch, kwargs.get("initial_epoch", 0)))
            served, batch_size, shuffle = x, None, False
        if isinstance(x, ResumableDataset):
            shuffle = False
        check_optimizer(self)
        self._set_up_run(x, kwargs)
        self._start_averages()
        settings = {"batch_size": batch_size, "shuffle": shuffle, **kwargs}
        settings["validation_data"] = validation_data
        # keras_hub's own `fit` would map the preprocessor over the data as a TensorFlow graph.
        self._in_fit, self._told_of_short_run = True, False
        try:
            run = FitRun(self, x, settings.pop("callbacks", None), settings)
            run_checks.refuse_swapping(self, run.callbacks)
            accumulation = run_checks.AccumulationWatch(self, x, settings)

            def train(data, **settings):
                data = data if check is None else checked(check, data)
                with own_errors(check, validation_check):
                    return keras.Model.fit(self, data, **settings)

            history = run.fit(train)
            accumulation.after()
            return history
        finally:
            self._in_fit = False
            if served is not None:
                served.on_epoch_end()
                place = served.position
                self._data_epoch = place["epoch"] + (place["batch"] > 0)

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

    def quantize(self, mode=None, **kwargs):
        """Quantise the backbone, as `keras.Model.quantize`; the encoder stays as it is.

        Averaged weights become the model's own first. The model is compiled anew: the
        optimizer's state belonged to the layers that were replaced.
        """
        self.backbone.check_quantization(mode, **kwargs)
        adopt_averages(self)
        self.backbone.quantize(mode, **kwargs)
        self.compile()

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

    def _kept_averages(self):
        """`(pairs, share_of_start)` of the optimizer as it is."""
        share = trained_share(self)
        return (self.optimizer.average_pairs() if share else []), 1.0 - share

    def _set_up_run(self, x, settings):
        if self.optimizer is None:
            return
        names = ("epochs", "initial_epoch", "steps_per_epoch")
        batches = batches_in_run(x, **{n: settings[n] for n in names if n in settings})
        if set_up_run(self.optimizer, batches, batch_size_of(x), self._automatic_recipe):
            self.train_function = None  # Compiled with the rates of another run.

    def _start_averages(self):
        # Weights may have been loaded since the optimizer was built; averages start at them.
        optimizer = self.optimizer
        if optimizer is None:
            return
        # State first made inside a step has TensorFlow trace and compile that step twice;
        # under a strategy of TensorFlow's, Keras makes it within the strategy's scope.
        if not optimizer.built and getattr(self, "_distribute_strategy", None) is None:
            optimizer.build(self.trainable_variables)
        if not trained_share(self):
            restart_averages(self)
