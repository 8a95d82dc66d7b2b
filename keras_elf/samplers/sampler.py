"""What every sampler is: a time grid, a state and one pure step."""

import keras
import numpy as np
from keras import ops

from keras_elf import checks, flow
from keras_elf.configurable import Configurable
from keras_elf.flow.schedules import TIME_MEAN, TIME_STD


class Sampler(Configurable):
    """Base of the samplers. A subclass writes `step`; the rest serves all.

    A step is a pure function of tensors, compiled once for each sampler with its settings;
    noise is handed in. What a step needs of earlier ones it keeps in the state.

    A sampler of one's own:

    ```python
    @keras_elf.samplers.register("damped")
    class Damped(keras_elf.samplers.ODESampler):
        def __init__(self, damping=0.9, **kwargs):
            super().__init__(**kwargs)
            self.damping = damping

        def step(self, denoise, state, t, t_next, noise=None):
            predicted = denoise(state["z"], state["x_pred"], t)
            z = state["z"] + self.damping * (t_next - t) * predicted.velocity
            return {"z": z, "x_pred": predicted.clean}

        def last_step(self, *args):
            return super().step(*args)  # All the way, so that the run ends at the prediction.
    ```

    Args:
        schedule: `"logit_normal"` (sorted draws of the training times, as published) or
            `"uniform"` (evenly spaced). Defaults to `"logit_normal"`.
        time_mean, time_std: floats. Of the logit-normal. Default to `-1.5`, `0.8`.

    Attributes:
        needs_noise: bool. Whether `step` is given standard normal noise like `z`.
        noise_scale: float or `None`. Scale of fresh noise. While `None` (the default), the one
            that the model was trained with is put here before the step is compiled.

    Raises:
        ValueError: for an unknown schedule or numbers that are not finite.

    Source: ELF, arXiv 2605.10938 (sampling).
    """

    needs_noise = False
    noise_scale = None

    def __init__(self, schedule="logit_normal", time_mean=TIME_MEAN, time_std=TIME_STD):
        self.schedule = checks.choice("schedule", schedule, flow.TIME_SCHEDULES)
        self.time_mean = checks.number("time_mean", time_mean)
        self.time_std = checks.number("time_std", time_std, minimum=0)

    def time_grid(self, num_steps, normal=None):
        """NumPy float32 `(num_steps + 1,)` from 0 to 1; see `flow.time_grid`.

        Args:
            num_steps: int >= 1.
            normal: `(num_steps - 1,)` standard normals of the logit-normal schedule.
        """
        normal = None if normal is None else ops.convert_to_tensor(normal, "float32")
        grid = flow.time_grid(num_steps, normal, self.schedule, self.time_mean, self.time_std)
        return np.asarray(ops.convert_to_numpy(grid), "float32")

    def init(self, z):
        """The state before the first step: a dict of tensors.

        Args:
            z: float32 tensor `(batch, length, width)`. Noise times its scale.

        Returns:
            dict with at least `"z"` and `"x_pred"`, the last prediction; zeros at first.
        """
        return {"z": z, "x_pred": ops.zeros_like(z)}

    def step(self, denoise, state, t, t_next, noise=None):
        """From the state at `t` to that at `t_next`.

        Args:
            denoise: `(z, self_condition, t) -> guidance.Prediction`, with guidance, the
                condition put in place before and after.
            state: dict of tensors as `init` and `step` return it.
            t, t_next: float32 scalar tensors.
            noise: standard normal tensor like `z`; `None` for samplers without noise. The
                last interval, where `t_next` is 1, must not use it.

        Returns:
            dict of the same form.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `step`.")

    def last_step(self, denoise, state, t, t_next, noise=None):
        """The step of the last interval. Defaults to `step`; override it where that one asks
        the network at `t_next`, which is 1 there."""
        return self.step(denoise, state, t, t_next, noise)

    def times(self, t, t_next):
        """Times at which the step from `t` to `t_next` asks the network, as floats.

        Guidance in an interval of t is left out of the steps that do not touch it, and the
        cost of a run is counted by them. A step of one's own that asks at other times, or
        more than once, overrides this.

        Args:
            t, t_next: floats.

        Returns:
            tuple of floats.
        """
        return (t,)

    def evaluations(self, num_steps):
        """How often a run of `num_steps` asks the network, without guidance and decoding."""
        grid = np.linspace(0.0, 1.0, num_steps + 1)
        return sum(len(self.times(t, s)) for t, s in zip(grid[:-1], grid[1:], strict=True))


SAMPLERS = {}


def register(name):
    """Class decorator: makes a sampler serialisable and known to `get` by `name`.

    Raises:
        ValueError: if the name belongs to another class.
    """

    def wrap(cls):
        known = SAMPLERS.setdefault(name, cls)
        if known.__qualname__ != cls.__qualname__:
            raise ValueError(f"A sampler named {name!r} exists: {known!r}. Choose another name")
        SAMPLERS[name] = cls
        return keras.saving.register_keras_serializable(package="keras_elf")(cls)

    return wrap


def get(sampler):
    """A `Sampler` from one, from its name or from its serialised form.

    Raises:
        ValueError: for an unknown name, another type, or a sampler without a step.
    """
    if isinstance(sampler, str):
        sampler = SAMPLERS[checks.choice("sampler", sampler, SAMPLERS)]()
    elif isinstance(sampler, dict) and "class_name" in sampler:
        sampler = keras.saving.deserialize_keras_object(sampler)
    if not isinstance(sampler, Sampler):
        raise ValueError(
            f"`sampler` must be a keras_elf.samplers.Sampler or one of {sorted(SAMPLERS)}. "
            f"Received: {sampler!r}"
        )
    if type(sampler).step is Sampler.step:
        raise ValueError(f"The sampler {type(sampler).__name__} must implement `step`.")
    return sampler
