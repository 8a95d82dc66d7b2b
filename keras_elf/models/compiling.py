"""`compile`: the optimizer of a run, published, automatic or one's own."""

import keras

from keras_elf.optimizers import AdamW, Muon, WarmupSchedule
from keras_elf.training import TrainingRecipe, kept_weights
from keras_elf.training.averages import adopt_averages


class Compiling:
    """Mixin of `ELFGenerator`: Keras's `compile` with ELF's recipes.

    Attributes:
        automatic_recipe: bool. Whether `fit` chooses the settings of the optimizer.
    """

    automatic_recipe = False

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
        self.automatic_recipe = isinstance(optimizer, str) and optimizer == "auto"
        if isinstance(optimizer, TrainingRecipe):
            if optimizer.objective is not None:
                self.objective = optimizer.objective
            optimizer = optimizer.optimizer()
        elif optimizer in ("auto", "published", "muon"):
            optimizer = Muon(WarmupSchedule(2e-3, warmup_steps=5000))
        elif optimizer == "adamw":
            optimizer = AdamW(WarmupSchedule(1e-3, warmup_steps=5000))
        self.reset_generation()
        before, share = kept_weights.averages_to_pass_on(self)
        super().compile(optimizer=optimizer, loss=None, metrics=None, **kwargs)
        kept_weights.pass_on_averages(before, share, self)

    def get_compile_config(self):
        config = super().get_compile_config()
        # A schedule that has run out would train a loaded model at rate 0.
        return {**config, "optimizer": "auto"} if config and self.automatic_recipe else config

    def compile_from_config(self, config):
        # Keras leaves a model with a `compile` of its own uncompiled when it is loaded, and
        # drops the optimizer's state, averages included, with no more than a warning.
        config = keras.saving.deserialize_keras_object(config)
        # What the saving backend made of "auto" need not suit the one that loads.
        config["jit_compile"] = "auto" if config.get("jit_compile") else False
        self.compile(**config)
        if self.optimizer is not None:
            self.optimizer.build(self.trainable_variables)

    def quantize(self, mode=None, **kwargs):
        """Quantise the backbone, as `keras.Model.quantize`; the encoder stays as it is.

        Averaged weights become the model's own first. The model is compiled anew: the
        optimizer's state belonged to the layers that were replaced.
        """
        if not hasattr(self.backbone, "check_quantization"):
            raise ValueError(
                "Only an ELFBackbone can be quantised through its generator. Received: "
                f"{type(self.backbone).__name__}; its own layers have `quantize`"
            )
        self.backbone.check_quantization(mode, **kwargs)
        adopt_averages(self)
        self.backbone.quantize(mode, **kwargs)
        self.compile()
