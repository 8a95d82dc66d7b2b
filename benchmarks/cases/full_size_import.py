"""Importing and loading ELF-B at full size: seconds, and memory as a multiple of the weights.

    KERAS_BACKEND=jax python -m benchmarks --case full_size_import

Writes a random checkpoint of 105M parameters in the torch layout (raw and averaged weights, 0.8 GB)
and a random T5-small (0.14 GB), imports both, and loads the preset that was written. Each part runs
in a process of its own. Needs 2.5 GB of disk and `torch`, which writes the file; expect a minute or
two on two cores. Memory is the process's peak over what it had after its imports.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ABOUT = "importing and loading a random ELF-B and T5-small: seconds, memory over the weights"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def write(directory):
    """A random ELF-B in a torch file and a random T5-small in safetensors."""
    import keras
    import numpy as np
    import safetensors.numpy
    import torch

    from keras_elf.checkpoints.names import is_transposed, variable_path
    from keras_elf.encoders import T5Encoder
    from keras_elf.encoders.t5_weights import weight_map
    from keras_elf.models import ELFBackbone

    directory, rng = pathlib.Path(directory), np.random.default_rng(0)
    with keras.StatelessScope():
        network = ELFBackbone.from_architecture("elf_b", name="elf_backbone")
    shapes = {v.path.removeprefix("elf_backbone/"): tuple(v.shape) for v in network.variables}
    names = {variable_path(name): name for name in _released_names(depth=12)}
    state = {}
    for path, shape in shapes.items():
        shape = shape[::-1] if is_transposed(names[path]) else shape
        state[names[path]] = torch.from_numpy(0.02 * rng.standard_normal(shape, dtype="float32"))
    averages = {name: array * 0.9 for name, array in state.items()}
    file = {"params": state, "ema_params1": averages, "step": 95000, "epoch": 5}
    torch.save(file, directory / "checkpoint_95000")
    t5 = T5Encoder(32128, 6, 8, 512, 2048, 64)
    arrays = {}
    for key, (variable, transposed) in weight_map(t5).items():
        shape = tuple(variable.shape)
        arrays[key] = rng.standard_normal(shape[::-1] if transposed else shape, dtype="float32")
    (directory / "t5").mkdir()
    safetensors.numpy.save_file(arrays, directory / "t5/model.safetensors")
    config = {
        "model_type": "t5",
        "vocab_size": 32128,
        "num_layers": 6,
        "num_heads": 8,
        "d_model": 512,
        "d_ff": 2048,
        "d_kv": 64,
        "feed_forward_proj": "relu",
    }
    (directory / "t5/config.json").write_text(json.dumps(config))
    return {"bytes": 4 * (sum(a.numel() for a in state.values()) + t5.count_params())}


def _released_names(depth):
    dense = {
        "self_cond_proj": True,
        "text_proj.proj1": False,
        "text_proj.proj2": True,
        "final_layer.linear": True,
        **{f"{e}.mlp_{i}": True for e in ("t_embedder", "self_cond_cfg_embedder") for i in (0, 2)},
    }
    names = [
        "t_emb_tokens",
        "self_cond_cfg_tokens",
        "mode_tokens",
        "proj_kernel",
        "proj_bias",
        "unembed_kernel",
        "unembed_bias",
        "final_layer.norm_final.weight",
    ]
    for i in range(depth):
        block = f"blocks.{i}."
        dense |= {block + name: True for name in ("attn.qkv", "attn.proj", "mlp.w12", "mlp.w3")}
        norms = ("norm1", "norm2", "attn.q_norm", "attn.k_norm")
        names += [f"{block}{name}.weight" for name in norms]
    names += [f"{name}.weight" for name in dense]
    return names + [f"{name}.bias" for name, bias in dense.items() if bias]


def measure(action, directory):
    """Seconds and peak memory of an import or of loading its preset."""
    import numpy  # noqa: F401

    import keras_elf.checkpoints.importing
    from benchmarks.memory import resident
    from keras_elf.models import ELFGenerator

    directory = pathlib.Path(directory)
    base, start = resident("VmRSS"), time.perf_counter()
    if action == "import":
        keras_elf.checkpoints.import_checkpoint(
            directory / "checkpoint_95000", directory / "preset", encoder=directory / "t5"
        )
    else:
        ELFGenerator.from_preset(directory / "preset", sequence_length=1024)
    return {"seconds": time.perf_counter() - start, "peak": resident("VmHWM") - base}


def run(settings):
    """One figure for each action; each is measured once, at ELF-B's own size."""
    from benchmarks import machine, timing

    figures = []
    with tempfile.TemporaryDirectory() as directory:
        size = _run("write", directory)["bytes"]
        for action in ("import", "load"):
            found = _run(action, directory)
            figures.append(
                {
                    "case": "full_size_import",
                    "what": action,
                    "date": machine.now(),
                    "time_s": timing.spread([found["seconds"]]),
                    "peak_bytes": found["peak"],
                    "peak_over_weights": found["peak"] / size,
                }
            )
    return figures


def _run(action, directory):
    """What `write` returns, or `measure` of another action, in a process of its own."""
    call = f"write({directory!r})" if action == "write" else f"measure({action!r}, {directory!r})"
    program = (
        f"import json\nfrom benchmarks.cases.full_size_import import *\nprint(json.dumps({call}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])
