"""The training objective of ELF as one configurable object."""

import keras
from keras import ops

from keras_elf import checks, flow
from keras_elf.configurable import Configurable
from keras_elf.objectives import compositions
from keras_elf.objectives.contract import check_times, check_weighting
from keras_elf.objectives.decode_corruption import LogitNormalCorruption
from keras_elf.objectives.guidance_scale_samplers import LogUniformScales
from keras_elf.objectives.mixed import mixed_loss
from keras_elf.objectives.parts import part
from keras_elf.objectives.randomness import normal, row_numbers, uniform
from keras_elf.objectives.time_samplers import LogitNormalTimes
from keras_elf.objectives.weighting import VelocityWeighting

BRANCHES = ("denoise_loss", "decode_loss")


@keras.saving.register_keras_serializable(package="keras_elf")
class ELFObjective(Configurable):
    """Denoise and decode branches with self-conditioning guidance in training.

    Denoise rows: z on the straight path at a time of its own, squared error of the
    velocity; half of them conditioned on the network's own prediction, with a guided
    target. Decode rows: every token corrupted by its own amount, the network at t = 1 in
    decode mode, cross-entropy of the ids. Every draw is made by `draw`, outside the
    passes, so that recorded draws can be fed instead.

    Numbers such as `time_mean` are the short form of the published parts; a part given as an
    object takes their place. In an evaluation (`training=False`) each row has its own branch,
    whatever the composition, and the loss is a mean over positions.

    Args:
        composition: how branches are spread over a batch, a name or a `Composition`.
            `"stratified"` (default): fixed shares of rows, cheapest; a batch with too few rows
            for its groups is treated as `"per_example"`. `"per_example"`: a branch for each
            row, as the public PyTorch code. `"per_step"`: one for the whole step, as the
            public JAX code. All three have the same expected loss and gradient.
        decode_probability: float. Defaults to `0.2`.
        self_conditioning_probability: float. Defaults to `0.5`.
        prediction: what the denoising head predicts: `"x"` (default), `"v"`, `"epsilon"`.
        noise_scale: float. Noise of the flow. Defaults to `2.0`.
        decode_noise_scale: float. Noise of the decode branch: `5.0` (default) for
            unconditional text, `1.0` for translation and summarisation.
        time_mean, time_std: floats. Logit-normal times. Default to `-1.5`, `0.8`.
        decode_mean, decode_std: floats. Logit-normal mix of a token in the decode branch.
            Default to `0.8`, `0.8`.
        min_guidance_scale, max_guidance_scale: floats > 0. Range of the training
            guidance scale w. Default to `0.5`, `5.0`.
        min_time_gap: float. Floor under `1 - t` in velocities. Defaults to `0.05`.
        time_sampler: `TimeSampler`. Defaults to `LogitNormalTimes(time_mean, time_std)`.
        guidance_scale_sampler: `GuidanceScaleSampler`. Defaults to
            `LogUniformScales(min_guidance_scale, max_guidance_scale)`.
        decode_corruption: `DecodeCorruption`. Defaults to
            `LogitNormalCorruption(decode_mean, decode_std, decode_noise_scale)`.
        weighting: `Weighting` of the squared error of clean latents as a function of t.
            Defaults to `VelocityWeighting()`, the error of the velocity.
        terms: list of `Term`: what else is reported or added to the loss, such as
            `TimeBins(10)`. Defaults to none.

    Attributes:
        report_names: tuple of the names of the report besides `loss`.

    Raises:
        ValueError: for values out of range, unknown names, or a part given twice.

    Source: ELF, arXiv 2605.10938 (training objective; training-time self-conditioning
    guidance; decoding at t = 1).
    """

    def __init__(
        self,
        composition="stratified",
        decode_probability=0.2,
        self_conditioning_probability=0.5,
        prediction="x",
        noise_scale=flow.NOISE_SCALE,
        decode_noise_scale=5.0,
        time_mean=-1.5,
        time_std=0.8,
        decode_mean=0.8,
        decode_std=0.8,
        min_guidance_scale=0.5,
        max_guidance_scale=5.0,
        min_time_gap=flow.MIN_TIME_GAP,
        time_sampler=None,
        guidance_scale_sampler=None,
        decode_corruption=None,
        weighting=None,
        terms=None,
    ):
        self.composition = composition
        self.compose = compositions.get(composition)
        self.decode_probability = checks.probability("decode_probability", decode_probability)
        self.self_conditioning_probability = checks.probability(
            "self_conditioning_probability", self_conditioning_probability
        )
        self.prediction = checks.choice("prediction", prediction, flow.PREDICTIONS)
        self.noise_scale = checks.number("noise_scale", noise_scale, minimum=0)
        self.decode_noise_scale = checks.number("decode_noise_scale", decode_noise_scale, minimum=0)
        self.time_mean = checks.number("time_mean", time_mean)
        self.time_std = checks.number("time_std", time_std, minimum=0)
        self.decode_mean = checks.number("decode_mean", decode_mean)
        self.decode_std = checks.number("decode_std", decode_std, minimum=0)
        self.min_guidance_scale = checks.number(
            "min_guidance_scale", min_guidance_scale, minimum=1e-3
        )
        self.max_guidance_scale = checks.number(
            "max_guidance_scale", max_guidance_scale, minimum=self.min_guidance_scale
        )
        self.min_time_gap = checks.number("min_time_gap", min_time_gap, minimum=1e-6, maximum=1)

        self.time_sampler = part(
            self, "time_sampler", time_sampler, LogitNormalTimes, ("time_mean", "time_std")
        )
        self.guidance_scale_sampler = part(
            self,
            "guidance_scale_sampler",
            guidance_scale_sampler,
            LogUniformScales,
            ("min_guidance_scale", "max_guidance_scale"),
        )
        self.decode_corruption = part(
            self,
            "decode_corruption",
            decode_corruption,
            LogitNormalCorruption,
            ("decode_mean", "decode_std", "decode_noise_scale"),
        )
        self.weighting = part(self, "weighting", weighting, VelocityWeighting, ())
        if time_sampler is not None:
            check_times(time_sampler)
        if weighting is not None:
            check_weighting(weighting)
        self.terms = list(terms or [])
        given = {
            "time_sampler": time_sampler,
            "guidance_scale_sampler": guidance_scale_sampler,
            "decode_corruption": decode_corruption,
            "weighting": weighting,
            "terms": terms or None,
        }
        self._made = {name: getattr(self, name) for name, one in given.items() if one is None}
        if not all(callable(t) and hasattr(t, "names") for t in self.terms):
            raise ValueError(f"`terms` must be a list of Term. Received: {terms!r}")

    @property
    def report_names(self):
        return (*BRANCHES, *(name for term in self.terms for name in term.names))

    def draw(self, shape, seed):
        """All random tensors of one step.

        Args:
            shape: `(batch, length, width)` of the clean latents; entries may be tensors.
            seed: `keras.random.SeedGenerator` or int; a `RowSeedGenerator` within its `rows`
                gives each row draws and a branch that depend on the row's number alone.

        Returns:
            dict of `t` (batch,), `noise` and `decode_noise` (batch, length, width; one
            tensor, as a row uses only one of them), `decode_mix` (batch, length),
            `guidance_scale` (batch,), `is_decode`, `use_self_condition` (batch,) bool,
            `order` (batch,) uniform.
        """
        batch, length, width = shape
        seed = keras.random.SeedGenerator(seed) if isinstance(seed, int) else seed
        rows = row_numbers(seed)
        noise = normal((batch, length, width), seed)
        draws = {"noise": noise, "decode_noise": noise}
        if rows is None:
            branch = self.compose.branch(batch, seed)
        else:
            branch = flow.row_spread(rows)
        draws["is_decode"] = branch < self.decode_probability
        times, scales = self.time_sampler, self.guidance_scale_sampler
        corruption = self.decode_corruption
        draws["t"] = times.times(times.draw((batch,), seed))
        draws["decode_mix"] = corruption.mixes(corruption.draw((batch, length), seed))
        draws["guidance_scale"] = scales.scales(scales.draw((batch,), seed))
        if rows is None:
            own = uniform((batch,), seed)
        else:
            # Where a row lies among those that do not decode.
            own = (branch - self.decode_probability) / max(1 - self.decode_probability, 1e-6)
        draws["use_self_condition"] = own < self.self_conditioning_probability
        draws["order"] = uniform((batch,), seed)
        return draws

    def __call__(self, network, batch, draws, training=True):
        """Loss of a batch under given draws.

        Args:
            network: object with `hidden_states`, `denoising_head` and `unembedding`, such as
                `ELFBackbone`.
            batch: dict with `clean` (batch, length, width) float32 latents, zero at the
                condition of dropped rows; `token_ids` (batch, length) int; `is_cond`
                (batch, length); `counts` (batch, length) float, 1 where the loss counts; and
                optionally `signals`, a dict of `(batch,)` tensors for a network that has them.
            draws: dict as returned by `draw`.
            training: bool. Whether dropout is active in the pass that is differentiated, and
                the composition applies.

        Returns:
            dict: `loss`, a float32 scalar, and for each of `report_names` a pair of float32
            scalars: the mean and the number of positions it was measured at, 0 for none.
            `denoise_loss` is in squared velocity, `decode_loss` in nats.
        """
        batch = {
            **{name: value for name, value in batch.items() if value is not None},
            "clean": ops.cast(batch["clean"], "float32"),
            "counts": ops.cast(batch["counts"], "float32"),
        }
        compose = self.compose if training else mixed_loss
        return compose(self, network, batch, draws, training)

    def get_config(self):
        config = super().get_config()
        # What the short form made is said by the short form.
        for name, made in self._made.items():
            if getattr(self, name) is made:
                config.pop(name, None)
        return config
