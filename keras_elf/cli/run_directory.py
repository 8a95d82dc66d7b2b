"""The directory beside the preset that a run of `keras-elf train` keeps itself in."""

import contextlib
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import sys

from keras_elf.cli.plan import Plan


def folder(plan):
    """Where the run of a plan is kept."""
    return pathlib.Path(f"{os.path.normpath(plan.output)}.training")


def how_to_resume(folder):
    """The command that goes on with a run."""
    output = os.fspath(folder).removesuffix(".training")
    return f"keras-elf train --resume --output {shlex.quote(output)}"


def refuse_used(folder, output):
    """Raise `ValueError` if a run or a preset is in the way."""
    if os.path.lexists(folder):
        raise ValueError(
            f"{folder} holds a training: go on with `{how_to_resume(folder)}`, "
            "remove it, or choose another --output"
        )
    path = pathlib.Path(output)
    if os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
        raise ValueError(f"--output {output} exists already. Remove it, or choose another")


def saved_plan(options):
    """The `Plan` of the run that is to go on; raises `ValueError`."""
    given = ("recipe", "data", "preset", "seed", "packing", "tokenizer")
    extra = [f"--{name}" for name in given if getattr(options, name) is not None]
    if extra or options.settings:
        raise ValueError(
            f"--resume goes on with the settings of the run: leave out "
            f"{', '.join(extra + options.settings)}"
        )
    output = Plan.output if options.output is None else options.output
    path = pathlib.Path(f"{os.path.normpath(output)}.training") / "plan.json"
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no training to go on with: {path} is missing") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    fields = {field.name for field in dataclasses.fields(Plan)}
    if not isinstance(saved, dict) or set(saved) - fields:
        raise ValueError(f"{path} is damaged, or of another version")
    # The directory may have been moved.
    return Plan(**{**saved, "output": output})


@contextlib.contextmanager
def nothing_left(folder):
    """Remove the directory of a run that ends by an exception before its first step.

    Gives a dict, whose `"model"` tells how many steps there were. After Ctrl-C the directory
    stays: in it are the plan and what took time, the tokenizer and the encoder.
    """
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    run = {}
    try:
        yield run
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt) and (folder / "plan.json").is_file()
        if interrupted:
            print(f"To go on: {how_to_resume(folder)}", file=sys.stderr)
        elif folder in missing and not _trained(run.get("model"), folder):
            shutil.rmtree(folder, ignore_errors=True)
            for path in missing[1:]:
                with contextlib.suppress(OSError):
                    path.rmdir()
        raise


def _trained(model, folder):
    from keras import ops

    if any(folder.glob("checkpoints/step-*")):
        return True
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return False
    try:
        return int(ops.convert_to_numpy(optimizer.iterations)) > 0
    except (TypeError, ValueError, RuntimeError, AttributeError):
        # In the middle of `fit` JAX takes the values out of the variables.
        return True
