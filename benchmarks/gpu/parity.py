"""Numbers of the GPU against float32 on the CPU of the same machine, from the same weights.

The CPU's side runs in a process that sees no GPU, beside the GPU's own. Draws are made once and
handed over: PyTorch draws differently on each device.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from benchmarks import sizes
from benchmarks.gpu.gradient import loss_and_gradient_norm

CHILD_SECONDS = 120


def run(plan):
    """Relative differences, by dtype policy, for a forward pass, a loss, and a generation."""
    with tempfile.TemporaryDirectory() as directory:
        given = pathlib.Path(directory) / "given.npz"
        np.savez(given, **_draws(plan))
        child = _start_child(plan, directory)
        try:
            found = {policy: outputs(plan, policy, given) for policy in plan.parity_policies}
            message = child.communicate(timeout=CHILD_SECONDS)[1]
        finally:
            # It must not go on beside what is measured next.
            child.kill()
        if child.returncode:
            raise RuntimeError(f"The process on the CPU failed: {message[-2000:]}")
        with np.load(pathlib.Path(directory) / "expected.npz") as archive:
            expected = dict(archive)
    policies = {policy: _compare(arrays, expected) for policy, arrays in found.items()}
    return {"shape": plan.parity, "policies": policies}


def outputs(plan, policy, given):
    """As `_outputs`, float32 being float32: JAX takes fewer bits on GPUs unless told."""
    if policy != "float32" or os.environ["KERAS_BACKEND"] != "jax":
        return _outputs(plan, policy, given)
    import jax

    with jax.default_matmul_precision("highest"):
        return _outputs(plan, policy, given)


def _outputs(plan, policy, given):
    """Arrays that a forward pass, a loss with its gradient, and a generation give.

    Args:
        plan: `Plan`.
        policy: dtype policy.
        given: path of the draws.
    """
    import keras
    from keras import ops

    with np.load(given) as archive:
        draws = {name: ops.convert_to_tensor(array) for name, array in archive.items()}
    elf = _model(plan, policy)
    batch = {k: ops.convert_to_tensor(v) for k, v in sizes.batch(_size(plan)).items()}
    clean = elf.latent_encoder.encode(*batch.values())
    network = elf.backbone

    def forward(z, t, w):
        hidden = network.hidden_states(z, t, z, guidance_scale=w)
        return network.denoising_head(hidden), network.unembedding(hidden[:1])

    from keras_elf.models import compiled

    z = ops.multiply(draws["noise"], 2.0)
    x_pred, logits = compiled(forward, network.variables)(z, draws["t"], draws["guidance_scale"])
    rows = {
        "clean": clean,
        "token_ids": batch["token_ids"],
        "is_cond": batch["is_cond"],
        "counts": ops.ones_like(batch["token_ids"], dtype="float32"),
    }
    loss, norm = loss_and_gradient_norm(
        lambda: elf.objective(network, rows, draws)["loss"], network.trainable_variables
    )
    tokens = elf.generate(
        num_samples=_size(plan).batch,
        num_steps=plan.parity["num_steps"],
        seed=0,
        verbose=False,
        use_averages=False,
    )
    result = {"x_pred": x_pred, "logits": logits, "loss": loss, "gradient_norm": norm}
    return {
        **{name: _numpy(keras, value) for name, value in result.items()},
        "tokens": tokens,
    }


def _size(plan):
    return plan.size("elf_b", plan.parity["rows"], plan.parity["length"])


def _model(plan, policy):
    """A model whose weights depend on nothing but their shapes and order."""
    elf = sizes.generator(_size(plan), policy, optimizer="none")
    rng = np.random.default_rng(2)
    for variable in elf.backbone.trainable_variables:
        if len(variable.shape) > 1:
            scale = variable.shape[-2] ** -0.5
            variable.assign(scale * rng.standard_normal(variable.shape, "float32"))
    return elf


def _draws(plan):
    import keras

    from keras_elf.objectives import ELFObjective

    size = _size(plan)
    shape = size.batch, size.length, size.latent_dim
    draws = ELFObjective().draw(shape, keras.random.SeedGenerator(3))
    return {name: _numpy(keras, value) for name, value in draws.items()}


def _numpy(keras, value):
    return np.asarray(keras.ops.convert_to_numpy(value))


def _compare(found, expected):
    def relative(name):
        a, b = (np.asarray(x[name], "float64") for x in (found, expected))
        return float(np.linalg.norm(a - b) / np.linalg.norm(b))

    return {
        "forward_relative_difference": relative("x_pred"),
        "logits_relative_difference": relative("logits"),
        "loss": float(found["loss"]),
        "loss_on_cpu": float(expected["loss"]),
        "loss_relative_difference": relative("loss"),
        "gradient_norm": float(found["gradient_norm"]),
        "gradient_norm_relative_difference": relative("gradient_norm"),
        "same_tokens": float((found["tokens"] == expected["tokens"]).mean()),
    }


def _start_child(plan, directory):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}
    root = str(pathlib.Path(__file__).parent.parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(
        part for part in (root, os.environ.get("PYTHONPATH")) if part
    )
    arguments = json.dumps([plan.dry_run, str(directory)])
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.gpu.parity", arguments],
        env=environment,
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def main():
    from benchmarks.cases import prepare_backend
    from benchmarks.gpu.plan import Plan, hide_tensorflow

    hide_tensorflow()
    dry_run, directory = json.loads(sys.argv[1])
    directory = pathlib.Path(directory)
    prepare_backend()
    found = outputs(Plan(dry_run), "float32", directory / "given.npz")
    np.savez(directory / "expected.npz", **found)


if __name__ == "__main__":
    main()
