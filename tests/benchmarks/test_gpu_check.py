"""The dry run of the GPU check: the same code on the CPU."""

import json
import math
import subprocess

import keras
import pytest

from benchmarks import gpu_check, machine
from benchmarks.gpu.plan import Plan, is_out_of_memory

NO_GPU_CHECK = keras.backend.backend() not in gpu_check.BACKENDS
PARTS = {
    *("matmul", "attention", "parity", "host_syncs"),
    *(f"{what}_elf_{model}" for what in ("training", "sampling") for model in "bml"),
}
# Compiling the rest takes too long on JAX for every run.
QUICK = {"matmul", "attention", "parity", "sampling_elf_b"}
RUN = QUICK if keras.backend.backend() == "jax" else PARTS


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    if NO_GPU_CHECK:
        pytest.skip("the GPU check is for PyTorch and JAX")
    path = tmp_path_factory.mktemp("gpu") / "found.json"
    written = []

    def after_part(line):
        written.append(path.exists() and len(json.loads(path.read_text())["parts"]))

    gpu_check.check(Plan(dry_run=True), path, print_fn=after_part, only=RUN)
    # The file is written after each part: it holds all parts before the one just printed.
    assert written[1:] == list(range(1, len(written)))
    return json.loads(path.read_text())


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [n for v in value for n in numbers(v)]
    return [value] if isinstance(value, (int, float)) else []


def check_parts(parts):
    for name, part in parts.items():
        assert "failed" not in part and "skipped" not in part, (name, part)
        assert all(math.isfinite(n) for n in numbers(part)), (name, part)


def check_training(parts):
    training = parts["training_elf_b"]
    tokens = training["batch"] * training["length"]
    assert training["tokens_per_s"] == pytest.approx(tokens / training["step_s"])
    rate = training["flops"] / training["step_s"] / parts["matmul"]["flops_per_s"]
    assert training["matmul_share"] == pytest.approx(rate)


def test_every_part_ran_and_every_figure_is_finite(found):
    assert set(found["parts"]) == RUN
    check_parts(found["parts"])


@pytest.mark.slow
@pytest.mark.skipif(keras.backend.backend() != "jax", reason="others ran all parts already")
def test_the_parts_that_compile_long():
    rest = (PARTS - QUICK) | {"matmul"}
    parts = gpu_check.check(Plan(dry_run=True), print_fn=lambda line: None, only=rest)["parts"]
    assert set(parts) == rest
    assert parts["host_syncs"]["transfers"] is None
    check_parts(parts)
    check_training(parts)


def test_the_same_numbers_in_another_process(found):
    parity = found["parts"]["parity"]["policies"]["float32"]
    for name in ("forward", "logits", "loss", "gradient_norm"):
        assert parity[f"{name}_relative_difference"] < 1e-5, name
    assert parity["loss"] > 0 and parity["gradient_norm"] > 0
    assert parity["same_tokens"] == 1.0


def test_figures_agree_with_one_another(found):
    if "training_elf_b" in RUN:
        check_training(found["parts"])
    sampling = found["parts"]["sampling_elf_b"]
    assert sampling["left_out"] == []
    for figure in sampling["batches"]:
        assert set(figure["measured_s"]) == set(figure["estimated_s"])
        assert figure["estimated_s"]["3"] - figure["estimated_s"]["2"] == pytest.approx(
            figure["step_s"]
        )


def test_what_waits_and_what_attends_is_told(found):
    attention = found["parts"]["attention"]
    assert {"elf_b", "elf_m", "elf_l"} <= set(attention)
    if keras.backend.backend() == "torch":
        assert found["parts"]["host_syncs"]["profiled"]["aten::item"] >= 0
        assert attention["elf_b"]["names"]


def test_no_time_left_is_said_and_not_spent(monkeypatch):
    plan = Plan(dry_run=True, budget_s=0.0)
    plan.dry_run = False
    monkeypatch.setattr(machine, "describe", dict)
    parts = gpu_check.check(plan, print_fn=lambda line: None)["parts"]
    assert set(parts) == PARTS
    assert all("were left" in part["skipped"] for part in parts.values())


def test_a_part_that_fails_does_not_cost_the_others(monkeypatch, capsys):
    def broken(plan):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(
        gpu_check, "parts", lambda: [("a", 0, broken), ("b", 0, lambda plan: {"x": 1})]
    )
    parts = gpu_check.check(Plan(dry_run=True), print_fn=lambda line: None)["parts"]
    assert parts["a"]["failed"] == "RuntimeError: out of luck" and parts["b"]["x"] == 1
    assert "out of luck" in capsys.readouterr().err


@pytest.mark.skipif(NO_GPU_CHECK or machine.gpu() is not None, reason="needs a lack of GPUs")
def test_without_a_gpu_it_asks_for_the_dry_run():
    with pytest.raises(SystemExit, match="^No GPU that .* can use; --dry-run does without.$"):
        gpu_check.main([])


@pytest.mark.backend_free
def test_out_of_memory_is_recognised():
    assert is_out_of_memory(RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating"))
    assert is_out_of_memory(type("OutOfMemoryError", (RuntimeError,), {})("CUDA out of memory."))
    assert not is_out_of_memory(subprocess.SubprocessError("shapes do not match"))
