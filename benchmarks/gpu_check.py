"""A check of keras_elf on one GPU, with PyTorch or JAX, that fits a few minutes.

    KERAS_BACKEND=torch python -m benchmarks.gpu_check --json gpu_torch.json

From a source checkout, with keras and keras-hub besides NumPy and PyTorch or JAX. ELF-B, M and L
in bfloat16 at S = 1024: which attention kernels run, numbers against float32 on the CPU, waits of
the host in a training step, training throughput, sampling latency, memory. Parts come in the order
of their worth; those for which no time is left are named in the file, which is rewritten after
each part, so that a run that is killed keeps its figures.
"""

import argparse
import functools
import os
import pathlib
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
os.environ.setdefault("KERAS_BACKEND", "torch")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Before JAX is imported: the share of memory that it would take at once says nothing.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.95")

from benchmarks import machine, record  # noqa: E402
from benchmarks.gpu.plan import Plan, hide_tensorflow  # noqa: E402

BACKENDS = ("torch", "jax")


def parts():
    """`(name, least seconds it needs, function of the plan)`, in the order of their worth.

    The seconds only decide what is not begun any more near the end of the budget.
    """
    from benchmarks.gpu import inspection, parity, speed

    def of(function, model):
        return functools.partial(function, model=model)

    return [
        ("matmul", 1, lambda plan: plan.matmul),
        ("attention", 3, inspection.attention_paths),
        ("parity", 20, parity.run),
        ("training_elf_b", 15, of(speed.training, "elf_b")),
        ("sampling_elf_b", 15, of(speed.sampling, "elf_b")),
        ("host_syncs", 10, inspection.host_syncs),
        ("training_elf_l", 20, of(speed.training, "elf_l")),
        ("training_elf_m", 20, of(speed.training, "elf_m")),
        ("sampling_elf_l", 20, of(speed.sampling, "elf_l")),
        ("sampling_elf_m", 20, of(speed.sampling, "elf_m")),
    ]


def check(plan, path=None, print_fn=print, only=None):
    """Run the parts that fit, and return the record.

    Args:
        plan: `Plan`.
        path: where the record is written after each part, or `None`.
        print_fn: called with a line a part.
        only: names of the parts to run, or `None` for all.
    """
    from benchmarks.cases import prepare_backend
    from benchmarks.gpu.speed import free, reset_peak

    prepare_backend()
    found = {
        "format": "gpu_check 1",
        "backend": os.environ["KERAS_BACKEND"],
        "dry_run": plan.dry_run,
        "budget_s": plan.budget_s,
        "date": machine.now(),
        "machine": machine.describe(),
        "versions": machine.versions(),
        "parts": {},
    }
    for name, least_s, part in parts():
        if only and name not in only:
            continue
        start = plan.spent()
        if not plan.dry_run and not plan.allows(least_s):
            result = {"skipped": f"{plan.budget_s - start:.0f} s were left"}
        else:
            reset_peak()
            try:
                result = part(plan)
            except Exception as error:  # One part that fails must not cost the others.
                traceback.print_exc()
                result = {"failed": f"{type(error).__name__}: {error}"[:500]}
            free()
        found["parts"][name] = {**result, "seconds": plan.spent() - start}
        print_fn(f"{name}: {headline(found['parts'][name])} ({plan.spent() - start:.1f} s)")
        if path is not None:
            record.write_json(found, path)
    return found


def headline(part):
    """The figures of a part that matter most, in one line."""
    for name in ("skipped", "failed"):
        if name in part:
            return f"{name}: {part[name]}"
    if "tokens_per_s" in part:
        return (
            f"{part['tokens_per_s']:,.0f} tokens/s at batch {part['batch']}, "
            f"{part['matmul_share']:.0%} of the matmul rate, {part['peak_bytes'] / 1e9:.1f} GB"
            + ("" if part["peak_of"] == "this part" else " since the start of the process")
        )
    if "batches" in part:
        return ", ".join(
            f"batch {b['batch']}: " + (b.get("skipped") or f"{b['step_s'] * 1e3:.2f} ms a step")
            for b in part["batches"]
        )
    if "flops_per_s" in part:
        return f"{part['flops_per_s'] / 1e12:.2f} TFLOP/s"
    if "policies" in part:
        return ", ".join(
            f"{policy} {found['forward_relative_difference']:.1e}"
            for policy, found in part["policies"].items()
        )
    if "elf_b" in part:
        models = ("elf_b", "elf_m", "elf_l")
        return ", ".join(f"{m} {'fused' if part[m]['fused'] else 'not fused'}" for m in models)
    return ", ".join(f"{k} {v}" for k, v in part.items() if k != "seconds")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu_check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures")
    parser.add_argument(
        "--budget-s", type=float, default=240.0, help="seconds the run may take; default: 240"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="the same code on the CPU at tiny sizes"
    )
    names = [name for name, _, _ in parts()]
    parser.add_argument(
        "--part", choices=names, action="append", help="repeatable; default: all, in this order"
    )
    options = parser.parse_args(arguments)
    if os.environ["KERAS_BACKEND"] not in BACKENDS:
        parser.error(f"KERAS_BACKEND must be one of {', '.join(BACKENDS)}")
    hide_tensorflow()
    if machine.gpu() is None and not options.dry_run:
        sys.exit(f"No GPU that {os.environ['KERAS_BACKEND']} can use; --dry-run does without.")
    plan = Plan(options.dry_run, options.budget_s)
    found = check(plan, options.json, only=options.part)
    return int(any("failed" in part for part in found["parts"].values()))


if __name__ == "__main__":
    raise SystemExit(main())
