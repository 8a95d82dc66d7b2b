"""Which attention kernels run, and how often a training step makes the host wait."""

import collections
import re
import warnings

import numpy as np

from benchmarks import sizes
from benchmarks.gpu.plan import MODELS

SIGNS = ("scaled_dot_product", "flash", "fmha", "cudnn", "sdpa", "attention", "softmax")
SYNCS = ("aten::_local_scalar_dense", "aten::item", "cudaStreamSynchronize")


def attention_paths(plan):
    """For the shapes of each model, in bfloat16: names of kernels or of fused calls, counted."""
    found = {}
    for model in MODELS:
        size = plan.size(model, rows=2)
        shape = (size.batch, size.length + 12, size.num_heads, size.hidden_size // size.num_heads)
        names = _attention_names(shape)
        fused = any("flash" in n or "fmha" in n or "efficient" in n or "cudnn" in n for n in names)
        found[model] = {"shape": list(shape), "names": names, "fused": fused}
    return found


def _attention_names(shape):
    import keras

    rng = np.random.default_rng(0)
    q, k, v = (
        keras.ops.convert_to_tensor(rng.standard_normal(shape, "float32"), "bfloat16")
        for _ in range(3)
    )

    from keras_elf.layers.attention import fused_attention as attend

    if keras.backend.backend() == "jax":
        import jax

        text = jax.jit(attend).lower(q, k, v).compile().as_text()
        return dict(collections.Counter(re.findall(r'custom_call_target="([^"]+)"', text)))
    events = _profile(lambda: attend(q, k, v))
    return {n: c for n, c in events.items() if any(sign in n.lower() for sign in SIGNS)}


def host_syncs(plan):
    """How often one training step of PyTorch waits for the device, after two to warm up.

    Counted twice: calls that fetch a value, by the profiler; and, on a GPU, warnings of
    `torch.cuda.set_sync_debug_mode`. JAX runs the step as one program: `transfers` says
    whether anything was fetched from the device within it.
    """
    import keras

    size = plan.size("elf_b", rows=5)
    elf = sizes.generator(size, "mixed_bfloat16")
    batch = {k: keras.ops.convert_to_tensor(v) for k, v in sizes.batch(size).items()}
    if keras.backend.backend() == "jax":
        return _jax_transfers(elf, batch)
    import torch

    elf.optimizer.build(elf.trainable_variables)

    def step():
        return elf.train_step((batch,))

    for _ in range(2):
        step()
    events = _profile(step)
    counts = {name: events.get(name, 0) for name in SYNCS}
    warned = None
    if torch.cuda.is_available():
        torch.cuda.set_sync_debug_mode("warn")
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        lines = [f"{w.filename.split('/')[-1]}:{w.lineno}" for w in caught]
        warned = dict(collections.Counter(lines))
    return {"profiled": counts, "warned": warned}


def _jax_transfers(elf, batch):
    import jax

    for _ in range(2):
        elf.train_on_batch(batch)
    elf.make_train_function()
    state = elf._get_jax_state(
        trainable_variables=True,
        non_trainable_variables=True,
        optimizer_variables=True,
        metrics_variables=True,
        purge_model_variables=False,
    )
    try:
        with jax.transfer_guard_device_to_host("disallow"):
            jax.block_until_ready(elf.train_function(state, iter([(batch,)])))
    except RuntimeError as error:
        return {"transfers": str(error)[:300]}
    return {"transfers": None}


def _profile(function):
    """dict of event name -> how often it occurred."""
    import torch

    function()
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        function()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return {event.key: event.count for event in profiler.key_averages()}
