"""Training throughput and sampling latency of a published size."""

import gc
import time

from benchmarks import flops, memory, sizes, timing
from benchmarks.gpu.plan import is_out_of_memory

# Of the budget; the batches that it leaves out come after the two that matter most.
SAMPLING_SHARE = 0.2


def training(plan, model):
    """Tokens a second of training steps within `fit`, at the largest batch that fits.

    Returns:
        dict of the figures; `tried` lists batches that did not fit.
    """
    tried, seconds = [], 0.0
    for rows in plan.training_batches[model]:
        if not plan.allows(seconds):
            return {"tried": tried, "skipped": "no time is left for a smaller batch"}
        size, start = plan.size(model, rows), plan.spent()
        try:
            return {**_training_figures(plan, size), "tried": tried}
        except Exception as error:  # Which class it is depends on the backend.
            if not is_out_of_memory(error):
                raise
            tried.append(rows)
        seconds = plan.spent() - start
        free()
    return {"tried": tried, "skipped": "no batch fits"}


def _training_figures(plan, size):
    import keras

    elf = sizes.generator(size, "mixed_bfloat16")
    batch = sizes.batch(size)

    class Batches(keras.utils.PyDataset):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def __len__(self):
            return self.number

        def __getitem__(self, index):
            return (batch,)

    def fit(steps):
        start = time.perf_counter()
        elf.fit(Batches(steps), epochs=1, verbose=0, shuffle=False)
        timing.synchronise([v.value for v in elf.trainable_variables[:1]])
        return time.perf_counter() - start

    first = fit(1)
    reset_peak()
    # What a call of `fit` costs besides its steps goes away in the difference.
    short, long = fit(1), fit(1 + plan.training_steps)
    step_s = max(long - short, 1e-9) / plan.training_steps
    count = flops.train_step(size)
    return {
        "batch": size.batch,
        "length": size.length,
        "first_s": first,
        "step_s": step_s,
        "steps": plan.training_steps,
        "tokens_per_s": size.tokens / step_s,
        "flops": count,
        "matmul_share": count / step_s / plan.matmul["flops_per_s"],
        **peak(),
    }


def sampling(plan, model):
    """Latency of `generate` in bfloat16 for each batch, largest value first.

    Whole runs are measured at the first two batches; for all, steps times the measured time of
    a step, plus what a run costs besides its steps, is given beside.
    """
    elf = sizes.generator(plan.size(model, 1), "bfloat16", optimizer="none")
    found, last, begun = [], 0.0, plan.spent()
    for index, rows in enumerate(plan.sampling_batches):
        if not plan.allows(last) or plan.spent() - begun > SAMPLING_SHARE * plan.budget_s:
            break
        start = time.perf_counter()
        try:
            found.append(_latency(plan, model, elf, rows, whole=index < 2))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            found.append({"batch": rows, "skipped": "out of memory"})
        last = time.perf_counter() - start
        free()
    left_out = list(plan.sampling_batches[len(found) :])
    return {"batches": found, "left_out": left_out, **peak()}


def _latency(plan, model, elf, rows, whole):
    few = plan.sampling_steps[0]

    def generate(num_steps):
        start = time.perf_counter()
        elf.generate(
            num_samples=rows, batch_size=rows, num_steps=num_steps, seed=0, verbose=False,
            use_averages=False,
        )  # fmt: skip
        return time.perf_counter() - start

    size = plan.size(model, rows)
    first = generate(1)
    one = min(generate(1) for _ in range(2))
    short = min(generate(few) for _ in range(2))
    step_s = max(short - one, 1e-9) / (few - 1)
    count = flops.forward(size)
    figure = {
        "batch": rows,
        "length": size.length,
        "first_s": first,
        "step_s": step_s,
        "flops": count,
        "matmul_share": count / step_s / plan.matmul["flops_per_s"],
        "estimated_s": {n: max(one - step_s, 0.0) + n * step_s for n in plan.sampling_steps},
        "measured_s": {few: short},
    }
    if whole:
        for num_steps in plan.sampling_steps[1:]:
            if plan.allows(2 * figure["estimated_s"][num_steps]):
                # The first run of another number of steps may compile.
                figure["measured_s"][num_steps] = min(generate(num_steps) for _ in range(2))
    return figure


def peak():
    """Peak memory on the GPU, and whether it may be that of an earlier part (JAX)."""
    import keras

    found = memory.device_peak()
    return {
        "peak_bytes": memory.resident("VmHWM") if found is None else found,
        "peak_of": "process since its start"
        if found is None or keras.backend.backend() == "jax"
        else "this part",
    }


def reset_peak():
    """Start PyTorch's record of the peak anew; JAX keeps one for the life of the process."""
    import keras

    if keras.backend.backend() == "torch":
        import torch

        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()


def free():
    """Give back what models of earlier parts held on a GPU."""
    import keras

    if memory.device_peak() is None:
        return
    gc.collect()
    if keras.backend.backend() == "torch":
        import torch

        torch.cuda.empty_cache()
