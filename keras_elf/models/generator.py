"""ELFGenerator: text to latents, the training step, and generation, as one Keras model."""

import keras
from keras import ops

from keras_elf import checks, denoiser
from keras_elf.encoders import LatentEncoder, TextEncoder
from keras_elf.encoders.deferred_encoder import DeferredEncoder
from keras_elf.keras_hub_quietly import keras_hub
from keras_elf.models.backbone import ELFBackbone
from keras_elf.models.compiling import Compiling
from keras_elf.models.fitting import EVALUATION_SEED, Fitting
from keras_elf.models.keras_tools import NotCloned
from keras_elf.models.on_batch import OnBatch
from keras_elf.models.overview import Overview
from keras_elf.models.preprocessor import ELFPreprocessor
from keras_elf.models.preset_methods import GeneratorPresets
from keras_elf.models.reporting import Reporting
from keras_elf.models.weights import Weights
from keras_elf.models.writing import Writing
from keras_elf.objectives import ELFObjective, RowSeedGenerator
from keras_elf.samplers import SamplingConfig, SDESampler
from keras_elf.training.checked_data import EMPTY
from keras_elf.training.kept_weights import ValidatedWeights


@keras.saving.register_keras_serializable(package="keras_elf")
class ELFGenerator(
    Compiling,
    Fitting,
    OnBatch,
    Weights,
    Reporting,
    Writing,
    GeneratorPresets,
    Overview,
    NotCloned,
    keras_hub.models.Task,
):
    """Embedded Language Flows, end to end: trains on text, writes text.

    The model's graph is `token ids -> frozen encoder -> clean latents`; the objective, run
    by `compute_loss` under every backend's own training step, draws noise and branches and
    makes the losses. `generate` carries noise back to text.

    Example:

    ```python
    elf = keras_elf.ELFGenerator(backbone, encoder, preprocessor)
    elf.compile(optimizer=keras_elf.optimizers.Muon(2e-3))
    elf.fit(["In the beginning ...", ...], batch_size=64, epochs=5)
    elf.generate(num_samples=4, num_steps=32, seed=0)
    elf.save_to_preset("my_elf")
    ```

    Args:
        backbone: the network: `ELFBackbone`, or one of your own that keeps the contract of
            `keras_elf.Denoiser`.
        encoder: a `keras_elf.encoders.TextEncoder` of the backbone's latent width. Defaults
            to the encoder that the backbone's unembedding is tied to.
        preprocessor: `ELFPreprocessor`, or `None` for a model on token ids.
        latent_mean, latent_std: floats. Standardisation of the latents. Default to `0.0`,
            `0.2`, which suit T5-small. For another encoder `keras_elf.encoders.pretrain` returns
            them, and `keras_elf.encoders.latent_statistics` measures them.
        label_drop_probability: float. Share of training rows that lose their condition;
            `0.1` in published conditional models. Defaults to `0.0`.
        loss_on_padding: bool. Whether padding counts in the loss. Defaults to whether the
            preprocessor pads with the end token: then the model learns where to stop.
        objective: `ELFObjective`, or an object with the same methods and attributes (see
            `keras_elf.objectives.check_parts`). Defaults to the published settings in
            stratified batches.
        sampler: default sampler of `generate`. Defaults to `SDESampler(gamma=1.5)`.
        num_steps: int. Default number of sampling steps. Defaults to `64`.
        guidance_scale: float. Default guidance on the condition. Defaults to `1.0`, none.
        self_cond_guidance_scale: float. Default guidance on self-conditioning. Defaults to
            `3.0`.
        guidance: list of `keras_elf.guidance.Guidance` in place of the two scales. Defaults to
            `None`.
        sequence_length: int. Length of generated sequences. Defaults to the preprocessor's.
        seed: int or `None`. Seed of the training draws.
        conditional: bool or `None`. Whether there were conditions in what the model was trained
            on, which `fit` notes; `generate` warns where it is given one in vain. Defaults to
            `None`: not known.

    Raises:
        ValueError: where the parts do not fit together (latent width, vocabulary) or a
            value is out of range.
        TypeError: for unknown arguments.

    Source: ELF, arXiv 2605.10938.
    """

    backbone_cls = ELFBackbone
    preprocessor_cls = ELFPreprocessor

    def __init__(
        self,
        backbone,
        encoder=None,
        preprocessor=None,
        latent_mean=0.0,
        latent_std=0.2,
        label_drop_probability=0.0,
        loss_on_padding=None,
        objective=None,
        sampler=None,
        num_steps=64,
        guidance_scale=None,
        self_cond_guidance_scale=None,
        sequence_length=None,
        seed=None,
        guidance=None,
        conditional=None,
        **kwargs,
    ):
        checks.no_unknown("ELFGenerator", kwargs, ("name", "dtype"))
        kwargs.pop("dtype", None)  # keras_hub hands every preset's dtype to the task as well.
        if encoder is None:
            encoder = getattr(backbone, "tied_to", None)
        if seed is not None:
            seed = checks.integer("seed", seed, minimum=0, maximum=2**31 - 1)
        _check_parts(backbone, encoder, preprocessor)
        denoiser.check_shapes(backbone)

        # === Layers ===
        latent_encoder = LatentEncoder(
            encoder, latent_mean, latent_std, label_drop_probability, seed, name="latent_encoder"
        )

        # === Functional Model ===
        inputs = {
            "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
            "is_cond": keras.Input((None,), dtype="bool", name="is_cond"),
            "is_valid": keras.Input((None,), dtype="bool", name="is_valid"),
            "segments": keras.Input((None,), dtype="int32", name="segments"),
        }
        outputs = latent_encoder(**inputs)
        with latent_encoder.left_unloaded():
            super().__init__(inputs=inputs, outputs=outputs, compile=False, **kwargs)

        # Set from here on, these are tracked on every backend.
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.latent_encoder = latent_encoder
        self.dtype_policy = backbone.dtype_policy
        self.seed_generator = keras.random.SeedGenerator(seed)
        self.evaluation_seed_generator = RowSeedGenerator(EVALUATION_SEED)
        self.validated_weights = ValidatedWeights(self)

        # === Config ===
        self.objective = ELFObjective() if objective is None else objective
        self.loss_on_padding = loss_on_padding
        if loss_on_padding is None:
            self.loss_on_padding = preprocessor is not None and preprocessor.pad_with == "end"
        self.sampling = SamplingConfig(
            num_steps,
            SDESampler(gamma=1.5) if sampler is None else sampler,
            guidance,
            guidance_scale,
            self_cond_guidance_scale,
        )
        if sequence_length is None and preprocessor is not None:
            sequence_length = preprocessor.sequence_length
        elif preprocessor is not None and sequence_length != preprocessor.sequence_length:
            raise ValueError(
                "`sequence_length` must be the preprocessor's. Received: "
                f"{sequence_length}, the preprocessor has {preprocessor.sequence_length}"
            )
        if sequence_length is not None:
            sequence_length = checks.integer("sequence_length", sequence_length, minimum=1)
        self.sequence_length = sequence_length
        self.seed = seed
        self.conditional = conditional
        self.compile()

    @property
    def encoder(self):
        """The text encoder, loaded now if it was not yet."""
        return self.latent_encoder.encoder

    @property
    def pad_token_id(self):
        """Id of the padding token, or `None` without a preprocessor."""
        return None if self.preprocessor is None else self.preprocessor.pad_token_id

    def train_step(self, *args, **kwargs):
        """One step of ELF, on any backend.

        1. The graph encodes the ids with the frozen encoder and standardises: clean latents
           x. In conditional tasks some rows lose their condition here (label drop).
        2. `objective.draw` makes every random tensor of the step: times, noise, guidance
           scales, roles of the rows.
        3. Denoise rows are put on the straight path between noise and x. For those that use
           self-conditioning the network predicts twice without gradient, which gives their
           self-condition and their guided velocity target.
        4. Decode rows are corrupted token by token and shown at t = 1 in decode mode.
        5. One forward pass of all rows; squared velocity error of the denoise rows,
           cross-entropy of the decode rows, weighted to their expectation.
        6. Gradient, clip, optimizer step, average of the weights: Keras's own step and
           `keras_elf.optimizers`.

        Steps 2 to 5 are `ELFObjective`, called by `compute_loss`. The arguments and the
        returned value are those of the backend's own `train_step`.
        """
        return super().train_step(*args, **kwargs)

    def __call__(self, inputs, *args, **kwargs):
        # Before Keras compares the inputs with the graph's: masks may be left out.
        return super().__call__(self._complete(inputs), *args, **kwargs)

    def call(self, inputs, training=None, mask=None):
        # JAX's training step comes here directly.
        return super().call(self._complete(inputs), training=training, mask=mask)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The objective's loss of a batch; see `train_step`.

        Args:
            x: dict of `token_ids` and optionally `is_cond`, `is_valid`, `segments`,
                `(batch, length)`.
            y: must be `None`: the text is its own target.
            y_pred: the graph's output for `x`.
            sample_weight: optional `(batch,)` weights of the rows in the loss.
            training: bool. In an evaluation draws belong to the rows, by their number, and not
                to the batch.

        Returns:
            float32 scalar.
        """
        # Targets without a column: see `without_targets`.
        if y is not None and tuple(getattr(y, "shape", ()))[-1:] != (0,):
            raise ValueError("`y` must be None: the text is its own target.")
        given, x = x, self._complete(x)
        counts = 1.0 - ops.cast(x["is_cond"], "float32")
        if not self.loss_on_padding:
            counts = counts * ops.cast(x["is_valid"], "float32")
        if sample_weight is not None:
            counts = counts * ops.cast(sample_weight, "float32")[:, None]
        batch = {
            "clean": y_pred["clean"],
            "token_ids": x["token_ids"],
            "is_cond": x["is_cond"],
            "counts": counts,
            "signals": self._signals(given, y_pred["dropped"]),
        }
        draws = self._draw(ops.shape(y_pred["clean"]), training)
        report = self.objective(self.backbone, batch, draws, training=training)
        self.record(report, ops.sum(counts), ops.size(x["token_ids"]), training)
        return report["loss"]

    def get_config(self):
        tied_to, here = getattr(self.backbone, "tied_to", None), self.latent_encoder
        tied = here.deferred is None and here.encoder is tied_to
        serialize = keras.saving.serialize_keras_object
        return {
            **super().get_config(),
            "encoder": None if tied else here.encoder_config(),
            "latent_mean": self.latent_encoder.latent_mean,
            "latent_std": self.latent_encoder.latent_std,
            "label_drop_probability": self.latent_encoder.label_drop_probability,
            "loss_on_padding": self.loss_on_padding,
            "objective": serialize(self.objective),
            **self._sampling_config(),
            "sequence_length": self.sequence_length,
            "seed": self.seed,
            "conditional": self.conditional,
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for name in ("encoder", "objective", "sampler"):
            if isinstance(config.get(name), dict):
                config[name] = keras.saving.deserialize_keras_object(config[name])
        rules = config.get("guidance")
        if rules is not None:
            config["guidance"] = [
                keras.saving.deserialize_keras_object(rule) if isinstance(rule, dict) else rule
                for rule in (rules if isinstance(rules, (list, tuple)) else [rules])
            ]
        return super().from_config(config)

    def _sampling_config(self):
        serialize = keras.saving.serialize_keras_object
        sampling, scales = self.sampling, self.sampling.short_form()
        if scales is None:
            scales = {"guidance": [serialize(rule) for rule in sampling.guidance]}
        sampler = serialize(sampling.sampler)
        return {"sampler": sampler, "num_steps": sampling.num_steps, **scales}

    def _signals(self, x, dropped):
        """The network's further values of a batch; rows that lost their condition have none."""
        signals = {}
        for name, empty in denoiser.signals(self.backbone).items():
            value = x.get(name) if isinstance(x, dict) else None
            if value is not None:
                value = _as_tensor(value)
                # In the wider of the two: 0.5 must not become 0 beside whole numbers.
                value = ops.cast(value, _signal_dtype(empty, value))
                if empty is not None:
                    value = ops.where(dropped, ops.cast(empty, value.dtype), value)
                signals[name] = value
        return signals

    def _draw(self, shape, training):
        if training:
            return self.objective.draw(shape, self.seed_generator)
        with self.evaluation_seed_generator.rows(shape[0]) as seeds:
            return self.objective.draw(shape, seeds)

    def _complete(self, x):
        """`x` as the dict of all three inputs, missing masks filled in."""
        if x is None:
            raise ValueError(EMPTY)  # Keras builds a model on the first batch, or on None.
        x = x if isinstance(x, dict) else {"token_ids": x}
        ids = x.get("token_ids")
        if not hasattr(ids, "shape"):
            raise ValueError(
                "A batch must be an int array of token ids `(batch, length)` or a dict with "
                f"'token_ids'; text goes through `fit` or the preprocessor. Received: {x!r:.200}"
            )
        is_cond, is_valid = x.get("is_cond"), x.get("is_valid")
        if is_cond is None:
            is_cond = ops.zeros_like(ids, dtype="bool")
        if is_valid is None:
            is_valid = ops.ones_like(ids, dtype="bool")
            if self.pad_token_id is not None and not self.loss_on_padding:
                is_valid = ops.not_equal(ids, self.pad_token_id)
        segments = x.get("segments")
        if segments is None:
            segments = ops.zeros_like(ids, dtype="int32")
        full = {"token_ids": ids, "is_cond": is_cond, "is_valid": is_valid, "segments": segments}
        # Keras refuses a mixture of arrays and tensors, such as the masks just made.
        return {name: _as_tensor(value) for name, value in full.items()}


def _signal_dtype(empty, value):
    whole = isinstance(empty, (int, type(None))) and "int" in keras.backend.standardize_dtype(
        value.dtype
    )
    return "int32" if whole else "float32"


def _as_tensor(value):
    # Tensors too: those of a loader of PyTorch come on the CPU, wherever the model is.
    return value if keras.backend.is_keras_tensor(value) else ops.convert_to_tensor(value)


def _check_parts(backbone, encoder, preprocessor):
    denoiser.check_names(backbone)
    if not isinstance(encoder, (TextEncoder, DeferredEncoder)):
        raise ValueError(
            f"`encoder` must be a keras_elf.encoders.TextEncoder. Received: {encoder!r}"
        )
    if encoder.latent_dim != backbone.latent_dim:
        raise ValueError(
            "`encoder` must have the backbone's latent width. Received: encoder.latent_dim="
            f"{encoder.latent_dim}, backbone.latent_dim={backbone.latent_dim}"
        )
    if encoder.vocabulary_size < backbone.vocabulary_size:
        raise ValueError(
            "`encoder` must know every id of the backbone. Received: encoder.vocabulary_size="
            f"{encoder.vocabulary_size}, backbone.vocabulary_size={backbone.vocabulary_size}"
        )
    if preprocessor is not None and not isinstance(preprocessor, ELFPreprocessor):
        raise ValueError(f"`preprocessor` must be an ELFPreprocessor. Received: {preprocessor!r}")
    # While a preset is loaded its tokenizer has no vocabulary yet.
    trained = preprocessor is not None and preprocessor.trained
    if trained and preprocessor.vocabulary_size > backbone.vocabulary_size:
        raise ValueError(
            "`preprocessor` must not have more ids than the backbone. Received: "
            f"preprocessor.vocabulary_size={preprocessor.vocabulary_size}, "
            f"backbone.vocabulary_size={backbone.vocabulary_size}"
        )
