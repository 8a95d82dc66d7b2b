"""The training objective of ELF as one configurable object."""

import keras
from keras import ops

from keras_elf import checks, flow
from keras_elf.objectives.groups import RowGroups
from keras_elf.objectives.mixed import mixed_loss
from keras_elf.objectives.sharding import data_blocks
from keras_elf.objectives.stratified import stratified_loss

COMPOSITIONS = ("stratified", "per_example", "per_step")


@keras.saving.register_keras_serializable(package="keras_elf")
class ELFObjective:
    """Denoise and decode branches with self-conditioning guidance in training.

    Denoise rows: z on the straight path at a logit-normal time, squared error of the
    velocity; half of them conditioned on the network's own prediction, with a guided
    target. Decode rows: every token corrupted by its own amount, the network at t = 1 in
    decode mode, cross-entropy of the ids. Every draw is made by `draw`, outside the
    passes, so that recorded draws can be fed instead.

    Args:
        composition: how branches are spread over a batch. `"stratified"` (default): fixed
            shares of rows, cheapest; a batch with too few rows for its groups is treated
            as `"per_example"`. `"per_example"`: a branch for each row, as the public
            PyTorch code. `"per_step"`: one for the whole step, as the public JAX code.
            All three have the same expected loss and gradient.
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

    Raises:
        ValueError: for values out of range or unknown names.

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
    ):
        self.composition = checks.choice("composition", composition, COMPOSITIONS)
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

    def draw(self, shape, seed):
        """All random tensors of one step.

        Args:
            shape: `(batch, length, width)` of the clean latents; entries may be tensors.
            seed: `keras.random.SeedGenerator` or int.

        Returns:
            dict of `t` (batch,), `noise` and `decode_noise` (batch, length, width; one
            tensor, as a row uses only one of them), `decode_mix` (batch, length),
            `guidance_scale` (batch,), `is_decode`, `use_self_condition` (batch,) bool,
            `order` (batch,) uniform.
        """
        batch, length, width = shape
        seed = keras.random.SeedGenerator(seed) if isinstance(seed, int) else seed
        normal, uniform = keras.random.normal, keras.random.uniform
        noise = normal((batch, length, width), dtype="float32", seed=seed)
        branch = uniform(
            (1,) if self.composition == "per_step" else (batch,), dtype="float32", seed=seed
        )
        return {
            "noise": noise,
            "decode_noise": noise,
            "t": flow.logit_normal(
                normal((batch,), dtype="float32", seed=seed), self.time_mean, self.time_std
            ),
            "decode_mix": flow.logit_normal(
                normal((batch, length), dtype="float32", seed=seed),
                self.decode_mean,
                self.decode_std,
            ),
            "guidance_scale": flow.guidance_scale(
                uniform((batch,), dtype="float32", seed=seed),
                self.min_guidance_scale,
                self.max_guidance_scale,
            ),
            "is_decode": ops.broadcast_to(branch < self.decode_probability, (batch,)),
            "use_self_condition": uniform((batch,), dtype="float32", seed=seed)
            < self.self_conditioning_probability,
            "order": uniform((batch,), dtype="float32", seed=seed),
        }

    def __call__(self, network, batch, draws, training=True):
        """Loss of a batch under given draws.

        Args:
            network: object with `hidden_states`, `denoising_head`, `unembedding` and
                `num_guidance_tokens`, such as `ELFBackbone`.
            batch: dict with `clean` (batch, length, width) float32 latents, zero at the
                condition of dropped rows; `token_ids` (batch, length) int; `is_cond`
                (batch, length); `counts` (batch, length) float, 1 where the loss counts.
            draws: dict as returned by `draw`.
            training: bool. Whether dropout is active in the pass that is differentiated.

        Returns:
            dict of float32 scalars: `loss`, and of each branch its mean (`denoise_loss`
            in squared velocity, `decode_loss` in nats) and its number of counting
            positions (`denoise_count`, `decode_count`).
        """
        batch = {
            **batch,
            "clean": ops.cast(batch["clean"], "float32"),
            "counts": ops.cast(batch["counts"], "float32"),
        }
        if self.composition == "stratified":
            p_decode, p_sc = self.decode_probability, self.self_conditioning_probability
            shares = (p_decode, (1 - p_decode) * p_sc, (1 - p_decode) * (1 - p_sc))
            groups = RowGroups(ops.shape(batch["clean"])[0], shares, data_blocks())
            if groups.fit:
                return stratified_loss(self, network, batch, draws, groups, training)
        return mixed_loss(self, network, batch, draws, training)

    def get_config(self):
        names = (
            "composition decode_probability self_conditioning_probability prediction noise_scale "
            "decode_noise_scale time_mean time_std decode_mean decode_std min_guidance_scale "
            "max_guidance_scale min_time_gap"
        )
        return {name: getattr(self, name) for name in names.split()}

    @classmethod
    def from_config(cls, config):
        return cls(**config)
