"""What every sampler is: a time grid and one pure step."""

import keras
import numpy as np
from keras import ops

from keras_elf import checks, flow


class Sampler:
    """Base of the samplers. A subclass writes `step`, the rest serves all.

    A step is a pure function of tensors; noise is handed in. The last interval of a grid is
    always walked without noise.

    Args:
        schedule: `"logit_normal"` (sorted draws of the training times, as published) or
            `"uniform"` (evenly spaced). Defaults to `"logit_normal"`.
        time_mean, time_std: floats. Of the logit-normal. Default to `-1.5`, `0.8`.

    Source: ELF, arXiv 2605.10938 (sampling).
    """

    needs_noise = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls) and "network_times" not in vars(cls):
            # A step of its own may ask the network at other times than its parent's.
            cls.network_times = Sampler.network_times

    def __init__(self, schedule="logit_normal", time_mean=-1.5, time_std=0.8):
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

    def noise_amounts(self, grid):
        """What `step` is given as `amount` in each interval, `(num_steps,)`, last one 0."""
        return np.zeros(len(grid) - 1, "float32")

    def network_times(self, grid, amounts):
        """Times at which the steps ask the network, where that is known beforehand.

        The context tokens of all steps can then be made at once. A subclass with a `step` of
        its own that asks once a step may say so here.

        Args:
            grid: NumPy `(num_steps + 1,)`.
            amounts: NumPy `(num_steps,)`.

        Returns:
            NumPy float32 `(num_steps,)`, or `None`: `step` is then free to ask at any time.
        """
        return None

    def step_key(self):
        """Hashable of all settings that `step` itself reads, to tell compiled steps apart."""
        return ()

    def step(self, denoise, z, self_condition, t, t_next, amount, noise, pin):
        """From `z` at `t` to `t_next`.

        Args:
            denoise: `(z, self_condition, t) -> (x_pred, velocity)`, guidance and condition
                included.
            z: float32 tensor `(batch, length, width)`.
            self_condition: the last prediction, same shape.
            t, t_next: float32 scalars.
            amount: float32 scalar, this interval's entry of `noise_amounts`.
            noise: standard normal tensor like `z`; `None` for samplers without noise.
            pin: `z -> z` that puts condition positions back.

        Returns:
            `(z at t_next, x_pred)`.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement `step`.")

    def get_config(self):
        return {
            "schedule": self.schedule,
            "time_mean": self.time_mean,
            "time_std": self.time_std,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**config)


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
        ValueError: for an unknown name or another type.
    """
    if isinstance(sampler, Sampler):
        return sampler
    if isinstance(sampler, str):
        return SAMPLERS[checks.choice("sampler", sampler, SAMPLERS)]()
    if isinstance(sampler, dict) and "class_name" in sampler:
        sampler = keras.saving.deserialize_keras_object(sampler)
        if isinstance(sampler, Sampler):
            return sampler
    raise ValueError(
        f"`sampler` must be a keras_elf.samplers.Sampler or one of {sorted(SAMPLERS)}. "
        f"Received: {sampler!r}"
    )
