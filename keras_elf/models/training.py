"""`compile`, `fit` and `evaluate`: Keras's own, with ELF's defaults and forms of data."""

import keras
import numpy as np
from keras import ops

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
    running,
    set_up_run,
)
from keras_elf.training.averages import adopt_averages, averaged_weights
from keras_elf.training.state_guard import KeptState, state_given_back

EVALUATION_SEED = 0


class Training(OnBatch, KeptState):
    """Mixin of `ELFGenerator`: everything around the training step."""

    _data_epoch = 0
    _automatic_recipe = False

    def compile(self, optimizer="auto", loss=None, *, metrics=None, **kwargs):
        """Configure training.

        Args:
            optimizer: `"auto"` (default) for Muon with the rates and averages that suit the
                run, by `TrainingRecipe.for_run`: `fit` sets them when it knows how many steps
                it takes, and sets them anew, keeping the averages, at each later call.
                `"published"` or `"muon"` for the published recipe, made for 100,000 steps
                (Muon at 2e-3, the value at batch 512, after 5,000 steps of warm-up;
                gradients clipped at norm 1; weights averaged with 0.9999). A
                `TrainingRecipe`, for that of a preset or one's own, whose `objective`, if it
                has one, becomes the model's. `"adamw"` for the ablation's AdamW, or an
                optimizer. `keras_elf.optimizers` keep averages that `generate`, `evaluate`
                and `save_to_preset` use.
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
        super().compile(optimizer=optimizer, loss=None, metrics=None, **kwargs)

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
                `is_cond`, `is_valid`. Text and ids in memory are shuffled each epoch into
                batches of one size; rows that fill no batch wait for the next epoch.
            batch_size: int. Rows a step, for `x` in memory. Defaults to a power of two near
                the root of the number of rows, from 32 to 128.
            validation_data: in the forms of `x`. Evaluated with the averaged weights.
            shuffle: bool. Whether `x` in memory is shuffled. Defaults to `True`.
            validation_split: float. Last share of `x` in memory to validate on.
            **kwargs: as in `keras.Model.fit` (epochs, callbacks, verbose, ...).

        Returns:
            `keras.callbacks.History` with `loss`, `denoise_loss` (squared velocity) and
            `decode_loss` (nats a token).

        Raises:
            ValueError: for data that does not fit the model, or under `mixed_float16`.
        """
        if isinstance(x, str):
            raise ValueError(
                "`x` must be a list of texts, not a single str: for a file pass its lines. "
                f"Received: {x!r:.80}"
            )
        if args:
            raise TypeError("`fit` takes only `x` by position: the text is its own target.")
        if kwargs.get("y") is not None:
            raise ValueError("`y` must be None: the text is its own target.")
        if "float16" == keras.backend.standardize_dtype(self.backbone.compute_dtype):
            raise ValueError(
                "float16 has too little range to train ELF. Use dtype='mixed_bfloat16' or "
                f"'float32'. Received policy: {self.backbone.dtype_policy.name}"
            )
        inputs.refuse_text(x)
        split = kwargs.pop("validation_split", None)
        if split and inputs.is_materialised(x):
            x, validation_data = inputs.split_rows(inputs.to_rows(self, x), split)
        if inputs.is_materialised(validation_data):
            size = kwargs.pop("validation_batch_size", None) or batch_size
            validation_data = inputs.evaluation_batches(self, validation_data, size)
        served = None
        if inputs.is_materialised(x):
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
        try:
            return FitRun(self, x, settings.pop("callbacks", None), settings).fit()
        finally:
            if served is not None:
                served.on_epoch_end()
                place = served.position
                self._data_epoch = place["epoch"] + (place["batch"] > 0)

    def evaluate(self, x=None, *args, batch_size=None, **kwargs):
        """Losses of both branches under fixed draws, with the averaged weights.

        Args:
            x: data in the forms of `fit`.
            batch_size: int. Rows a step, for `x` in memory. Defaults to `32`.
            **kwargs: as in `keras.Model.evaluate`, and `use_averages` (bool, default
                `True`).

        Returns:
            As `keras.Model.evaluate`: with `return_dict=True` a dict of `loss`,
            `denoise_loss` and `decode_loss`.
        """
        if args:
            raise TypeError("`evaluate` takes only `x` by position: the text is its own target.")
        run = running(kwargs.get("callbacks"))  # Where this is `fit`'s validation.
        if run is not None and not run.begin_validation():
            return {}  # Somebody waits for `fit` to stop.
        inputs.refuse_text(x)
        use_averages = kwargs.pop("use_averages", True)
        if inputs.is_materialised(x):
            x = inputs.evaluation_batches(self, x, batch_size)
            batch_size = None
        with averaged_weights(self, use_averages), state_given_back(self):
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

    def set_weights(self, weights):
        """As in Keras; averages, which knew other weights, start again from these."""
        super().set_weights(weights)
        self._restart_averages()

    def load_weights(self, filepath, **kwargs):
        """As in Keras; averages that the file does not hold start again from its weights."""
        before = self._averages()
        super().load_weights(filepath, **kwargs)
        unchanged = [np.array_equal(a, b) for a, b in zip(before, self._averages(), strict=False)]
        if all(unchanged):
            self._restart_averages()

    def _set_up_run(self, x, settings):
        if self.optimizer is None:
            return
        names = ("epochs", "initial_epoch", "steps_per_epoch")
        batches = batches_in_run(x, **{n: settings[n] for n in names if n in settings})
        if set_up_run(self.optimizer, batches, batch_size_of(x), self._automatic_recipe):
            self.train_function = None  # Compiled with the rates of another run.

    def _averages(self):
        optimizer = self.optimizer
        if not hasattr(optimizer, "average_pairs") or not optimizer.built:
            return []
        return [ops.convert_to_numpy(average) for _, average in optimizer.average_pairs()]

    def _start_averages(self):
        # Weights may have been loaded since the optimizer was built; averages start at them.
        optimizer = self.optimizer
        if optimizer is None:
            return
        # State first made inside a step has TensorFlow trace and compile that step twice;
        # under a strategy of TensorFlow's, Keras makes it within the strategy's scope.
        if not optimizer.built and getattr(self, "_distribute_strategy", None) is None:
            optimizer.build(self.trainable_variables)
        if hasattr(optimizer, "average_pairs") and optimizer.built:
            if int(ops.convert_to_numpy(optimizer.iterations)) == 0:
                self._restart_averages()

    def _restart_averages(self):
        optimizer = self.optimizer
        if hasattr(optimizer, "reset_average") and optimizer.built and optimizer.use_ema:
            optimizer.reset_average()
