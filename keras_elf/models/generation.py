"""Generation: conditions in, sampler loop over one compiled step, token ids out."""

import keras
import numpy as np
from keras import ops

from keras_elf import flow
from keras_elf.models.compiled import compiled
from keras_elf.objectives.passes import head_to_clean
from keras_elf.samplers import guided_clean, run


class GenerationFunctions:
    """The compiled parts of generation for one model, made on first use and kept.

    Args:
        model: `ELFGenerator`.
    """

    def __init__(self, model):
        self.model = model
        self._cache = {}

    def _get(self, key, make, variables):
        # LoRA and quantisation replace variables: what was compiled before is then stale.
        key = (key, tuple(id(v) for v in variables))
        if key not in self._cache:
            self._cache[key] = compiled(make(), variables, eager=bool(self.model.run_eagerly))
        return self._cache[key]

    def encode(self):
        """`(token_ids, is_cond, is_valid) -> clean latents`."""
        encoder = self.model.latent_encoder
        return self._get("encode", lambda: encoder.encode, encoder.variables)

    def prefixes(self):
        """`(times, w) -> context tokens (times, tokens, width)` in denoise mode."""
        backbone = self.model.backbone

        def prefixes(times, w):
            w = ops.broadcast_to(w, ops.shape(times))
            return backbone.context_prefix.tokens(
                times, w if backbone.num_guidance_tokens else None
            )

        return self._get("prefixes", lambda: prefixes, backbone.context_prefix.variables)

    def step(self, sampler, input_guidance, self_guidance):
        """One step of `sampler`; which guidances run decides the compiled function.

        `(z, self_condition, t, t_next, amount, noise, w, c, condition, is_cond, prefix)` ->
        `(z, x_pred)`, times, amounts and scales being scalar tensors, `prefix` the context
        tokens of the step, `None` to have them made from the time the sampler asks for.
        """
        key = ("step", type(sampler), sampler.step_key(), input_guidance, self_guidance)
        backbone, config = self.model.backbone, self.model.objective
        conditioned = backbone.num_guidance_tokens > 0

        def make():
            def step(z, self_condition, t, t_next, amount, noise, w, c, condition, is_cond, prefix):
                def predict(z, self_condition, t):
                    hidden = backbone.hidden_states(
                        z,
                        t,
                        self_condition,
                        guidance_scale=w if conditioned else None,
                        prefix=prefix,
                    )
                    return head_to_clean(config, backbone, hidden, z, t)

                def denoise(z, self_condition, t):
                    x = guided_clean(
                        predict,
                        z,
                        self_condition,
                        t,
                        condition,
                        is_cond,
                        c if input_guidance else None,
                        w if self_guidance else None,
                    )
                    return x, flow.velocity(x, z, t, config.min_time_gap)

                def pin(z):
                    return z if condition is None else flow.pin(z, condition, is_cond)

                return sampler.step(denoise, z, self_condition, t, t_next, amount, noise, pin)

            return step

        return self._get(key, make, backbone.variables)

    def decode(self):
        """`(z, w) -> token ids`: the network at t = 1 in decode mode, without self-condition."""
        backbone = self.model.backbone

        def decode(z, w):
            hidden = backbone.hidden_states(
                z,
                ops.ones(()),
                ops.zeros_like(z),
                guidance_scale=w if backbone.num_guidance_tokens else None,
                decode=1.0,
            )
            return backbone.unembedding.most_likely(hidden)

        return self._get("decode", lambda: decode, backbone.variables)


def step_prefixes(functions, settings, grid):
    """The context tokens of each step of a run, a list of NumPy `(1, tokens, width)`.

    They depend on the grid and not on the samples: once for all batches. `None` for each step
    where the sampler does not tell its times.
    """
    sampler = settings["sampler"]
    times = sampler.network_times(grid, sampler.noise_amounts(grid))
    if times is None:
        return [None] * (len(grid) - 1)
    w = np.float32(settings["self_cond_guidance_scale"])
    tokens = functions.prefixes()(np.asarray(times, "float32"), w)
    # As NumPy, since on JAX each index into a tensor would be a program of its own.
    return np.split(ops.convert_to_numpy(ops.cast(tokens, "float32")), len(times))


def sample_batch(
    functions, settings, samples, grid, noise, prefixes, condition=None, is_cond=None, callback=None
):
    """Token ids `(len(samples), length)` of one batch, int32 NumPy.

    Args:
        functions: `GenerationFunctions`.
        settings: dict of `sampler`, `length`, `guidance_scale`, `self_cond_guidance_scale`,
            `noise_scale`.
        samples: list of sample numbers, one a row.
        grid: times `(num_steps + 1,)`.
        noise: `SampleNoise`.
        prefixes: list of the context tokens of each step, see `step_prefixes`.
        condition: clean latents `(rows, length, width)`, read where `is_cond`; or `None`.
        is_cond: bool `(rows, length)`, or `None`.
        callback: see `samplers.run`.
    """
    backbone, sampler = functions.model.backbone, settings["sampler"]
    shape = settings["length"], backbone.latent_dim
    w = np.float32(settings["self_cond_guidance_scale"])
    c = np.float32(settings["guidance_scale"])
    z = ops.convert_to_tensor(settings["noise_scale"] * noise.initial(samples, shape), "float32")
    self_condition = ops.zeros_like(z)
    if condition is not None:
        condition, is_cond = ops.convert_to_tensor(condition), ops.convert_to_tensor(is_cond)
        z = flow.pin(z, condition, is_cond)
        self_condition = flow.pin(self_condition, condition, is_cond)
    step = functions.step(
        sampler,
        input_guidance=condition is not None and c != 1.0,
        self_guidance=not backbone.num_guidance_tokens and w != 1.0,
    )
    z = run(
        lambda z, sc, t, t_next, amount, given: step(
            z, sc, t, t_next, amount, given[0], w, c, condition, is_cond, given[1]
        ),
        grid,
        sampler.noise_amounts(grid),
        z,
        self_condition,
        lambda i: (
            noise.step(i, samples, shape) if sampler.needs_noise else None,
            prefixes[i],
        ),
        samples,
        callback,
    )
    return keras.ops.convert_to_numpy(functions.decode()(z, w))
