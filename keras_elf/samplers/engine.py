"""The sampling loop: Python over one compiled step, for any network and any sampler."""

import keras
from keras import ops

from keras_elf import denoiser, flow
from keras_elf.compiled import CompiledFunctions
from keras_elf.configurable import signature, snapshot
from keras_elf.guidance import DenoiserInputs, guided_prediction
from keras_elf.samplers.sampler import Sampler
from keras_elf.samplers.sampling_state import SamplingState


class SamplingEngine:
    """Carries noise to clean latents with a network, and reads tokens off them.

    Steps are compiled on first use and kept. What tells them apart is the configuration of
    sampler and guidance; numbers of guidance are arguments, so that another strength compiles
    nothing.

    Args:
        network: see `keras_elf.Denoiser`.
        prediction, noise_scale, min_time_gap: what the network was trained with, see
            `ELFObjective`.
        eager: bool. Whether the steps stay uncompiled. Defaults to `False`.
    """

    def __init__(
        self,
        network,
        prediction="x",
        noise_scale=flow.NOISE_SCALE,
        min_time_gap=flow.MIN_TIME_GAP,
        eager=False,
    ):
        self.network = network
        self.prediction, self.noise_scale = prediction, float(noise_scale)
        self.min_time_gap = float(min_time_gap)
        self._functions = CompiledFunctions(eager)

    def run(
        self,
        config,
        samples,
        length,
        noise,
        grid,
        condition=None,
        is_cond=None,
        signals=None,
        values=None,
        callback=None,
    ):
        """Latents at t = 1 of one batch.

        Args:
            config: `SamplingConfig`.
            samples: list of sample numbers, one a row.
            length: int. Tokens of a row.
            noise: `SampleNoise`.
            grid: NumPy times `(num_steps + 1,)`.
            condition: clean latents `(rows, length, width)`, read where `is_cond`; or `None`.
            is_cond: bool `(rows, length)`, or `None`.
            signals: dict of `(rows,)` values, or `None`.
            values: list of tensors to use in place of the network's variables, or `None`.
            callback: called with a `SamplingState` after each step, or `None`.

        Returns:
            float32 tensor `(rows, length, width)`.
        """
        sampler, shape = config.sampler, (length, self.network.latent_dim)
        z = ops.convert_to_tensor(self.noise_scale * noise.initial(samples, shape), "float32")
        if condition is not None:
            condition, is_cond = map(ops.convert_to_tensor, (condition, is_cond))
            z = flow.pin(z, condition, is_cond)
        given = condition, is_cond, dict(signals or {})
        state = sampler.init(z)
        _check_state(sampler, "init", state, shape=(len(samples), *shape))
        scales = [rule.rows(samples) for rule in config.guidance]
        num_steps = len(grid) - 1
        for i in range(num_steps):
            t, t_next = grid[i], grid[i + 1]
            step = self._step(config, self._active(config, t, t_next, given), i == num_steps - 1)
            fresh = noise.step(i, samples, shape) if sampler.needs_noise else None
            state = step(state, t, t_next, fresh, scales, *given, values=values)
            if callback is not None:
                z, x_pred = state["z"], state["x_pred"]
                callback(SamplingState(i + 1, num_steps, float(t_next), z, x_pred, samples, state))
        return state["z"]

    def decode(self, config, z, samples, signals=None, values=None):
        """int32 NumPy ids `(rows, length)`: the network at t = 1 in decode mode.

        Args:
            config: `SamplingConfig`, for the guidance scale that the network is told.
            z: clean latents `(rows, length, width)`.
            samples, signals, values: as in `run`.
        """
        rule = self._told(config.guidance)

        def make():
            def decode(z, scale, signals):
                t = ops.ones(())
                w = ops.ones(()) if rule is None else rule.scale_at(t, scale)
                hidden = denoiser.hidden_states(
                    self.network, z, t, ops.zeros_like(z), w, 1.0, signals
                )
                return denoiser.most_likely(self.network, hidden)

            return decode

        key = "decode", None if rule is None else _key(rule)
        function = self._functions.get(key, make, self.network.variables)
        scale = None if rule is None else rule.rows(samples)
        return keras.ops.convert_to_numpy(function(z, scale, dict(signals or {}), values=values))

    def evaluations(self, config, grid, conditioned=False):
        """Forward passes of the network that a run costs, the decoding one included.

        Args:
            config: `SamplingConfig`.
            grid: times `(num_steps + 1,)`.
            conditioned: bool. Whether there are conditions or signals.
        """
        given = (True, True, {}) if conditioned else (None, None, {})
        passes = 1
        for t, t_next in zip(grid[:-1], grid[1:], strict=True):
            copies = 2 ** len(self._active(config, t, t_next, given))
            passes += copies * len(config.sampler.times(float(t), float(t_next)))
        return passes

    def _active(self, config, t, t_next, given):
        """Numbers of the rules that need a further prediction in this interval."""
        times = config.sampler.times(float(t), float(t_next))
        inputs = DenoiserInputs(None, None, *given)
        return tuple(
            number
            for number, rule in enumerate(config.guidance)
            if rule.needs_prediction(self.network, inputs) and rule.acts(min(times), max(times))
        )

    def _told(self, rules):
        """The rule whose scale the network itself is told, or `None`."""
        return next((rule for rule in rules if rule.informs(self.network)), None)

    def _step(self, config, active, is_last):
        sampler, rules = config.sampler, [_without_scale(rule) for rule in config.guidance]
        own_last = is_last and type(sampler).last_step is not Sampler.last_step
        key = "step", signature(sampler), tuple(map(_key, config.guidance)), active, own_last

        def make():
            # A sampler that is changed later must not change what was compiled.
            fixed = snapshot(sampler)
            if fixed.noise_scale is None:
                fixed.noise_scale = self.noise_scale
            return self._stepping(fixed.last_step if own_last else fixed.step, rules, active)

        return self._functions.get(key, make, self.network.variables)

    def _stepping(self, step, rules, active):
        told, empty = self._told(rules), denoiser.signals(self.network)

        def stepping(state, t, t_next, noise, scales, condition, is_cond, signals):
            def predict(inputs, t):
                # Without its tokens a network would be one that no training has seen.
                w = ops.ones(())
                if told is not None:
                    w = _repeated(told.scale_at(t, scales[rules.index(told)]), inputs.z.shape[0])
                hidden = denoiser.hidden_states(
                    self.network, inputs.z, t, inputs.self_condition, w, 0.0, inputs.signals
                )
                output = self.network.denoising_head(hidden)
                constants = self.prediction, self.noise_scale, self.min_time_gap
                return flow.predicted_clean(output, inputs.z, t, *constants)

            def denoise(z, self_condition, t):
                z, self_condition = pin(z), pin(self_condition)
                inputs = DenoiserInputs(z, self_condition, condition, is_cond, signals, empty)
                acting = [(rules[number], scales[number]) for number in active]
                return guided_prediction(predict, inputs, t, acting, self.min_time_gap)

            def pin(z):
                return z if condition is None else flow.pin(z, condition, is_cond)

            after = step(denoise, state, t, t_next, noise)
            _check_state(step.__self__, step.__name__, after, state["z"].shape, state)
            return {**after, "z": pin(after["z"])}

        return stepping


def _check_state(sampler, method, state, shape, before=None):
    """Raise `ValueError` where a sampler returned no state; shapes are known while tracing."""
    name = f"`{method}` of the sampler {type(sampler).__name__}"
    if not isinstance(state, dict) or not {"z", "x_pred"} <= set(state):
        found = sorted(state) if isinstance(state, dict) else type(state).__name__
        raise ValueError(
            f"{name} must return the state, a dict with 'z' and 'x_pred'. Received: {found}"
        )
    if before is not None and set(state) != set(before):
        raise ValueError(
            f"{name} must return a state with the entries {sorted(before)}. Received: "
            f"{sorted(state)}"
        )
    for entry in ("z", "x_pred"):
        if tuple(state[entry].shape) != tuple(shape):
            raise ValueError(
                f"{name} must keep the shape of {entry!r}, {tuple(shape)}. Received: "
                f"{tuple(state[entry].shape)}"
            )


def _without_scale(rule):
    """A copy whose scale is an argument of the step, unless it is a function."""
    rule = snapshot(rule)
    if not callable(rule.scale):
        rule.scale = None
    return rule


def _key(rule):
    return signature(_without_scale(rule))


def _repeated(scale, rows):
    """A scale a row, for a batch that holds the rows several times."""
    if not len(scale.shape) or scale.shape[0] == rows:
        return scale
    return ops.tile(scale, [rows // scale.shape[0]])
