"""One step of `generate`, noise included, against one compiled forward pass."""

import functools
import time

import numpy as np

from benchmarks import flops, sizes, timing
from benchmarks.cases import Variant

ABOUT = "a step of `generate`, with and without condition guidance, against a forward pass"
STEPS = 4


class StepClock:
    """Seconds of one step within a whole generation.

    The first call gives the seconds of the whole generation, compilation included; later ones
    the median of the steps after the first.
    """

    def __init__(self, generate):
        self.generate, self.warm = generate, False

    def __call__(self):
        times = [time.perf_counter()]

        def after_step(state):
            timing.synchronise(state.z)
            times.append(time.perf_counter())

        self.generate(num_steps=STEPS, callback=after_step)
        if not self.warm:
            self.warm = True
            return time.perf_counter() - times[0]
        return float(np.median(np.diff(times[1:])))


def forward(elf, size):
    """One compiled forward pass in denoise mode, on arguments as the sampler's."""
    import keras

    import keras_elf

    network = elf.backbone

    def predict(z, self_condition, t, w):
        hidden = network.hidden_states(z, t, self_condition, guidance_scale=w)
        return network.denoising_head(hidden)

    compiled = keras_elf.models.compiled(predict, network.variables)
    shape = size.batch, size.length, size.latent_dim
    z = np.random.default_rng(0).standard_normal(shape, "float32")
    arguments = [keras.ops.convert_to_tensor(x) for x in (z, z, *np.float32([0.5, 3.0]))]
    return lambda: compiled(*arguments)


def generate(elf, size, **settings):
    """`elf.generate` on one full batch."""
    return functools.partial(
        elf.generate, seed=0, batch_size=size.batch, verbose=False, use_averages=False, **settings
    )


def variants(settings):
    size = settings.shape
    elf = functools.cache(lambda: sizes.generator(size, settings.dtype))
    conditions = sizes.batch(size)["token_ids"][:, : size.length // 2].tolist()

    def step(**arguments):
        return lambda: StepClock(generate(elf(), size, **arguments))

    return {
        "forward pass": Variant(
            lambda: forward(elf(), size), flops.forward(size), size.tokens, memory=False
        ),
        "step": Variant(
            step(num_samples=size.batch), flops.forward(size), size.tokens, self_timed=True
        ),
        "step with condition guidance": Variant(
            step(inputs=conditions, guidance_scale=2.0),
            flops.forward(size, 2 * size.batch),
            size.tokens,
            self_timed=True,
        ),
    }
