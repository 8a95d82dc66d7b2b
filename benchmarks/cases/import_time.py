"""Start-up: imports in fresh processes, and loading the preset in the package."""

import functools
import json
import subprocess
import sys

from benchmarks import timing
from benchmarks.cases import circumstances

ABOUT = "`import keras_elf` against `import keras` in fresh processes, and loading a preset"
LIGHT = "keras_elf.layers, keras_elf.objectives, keras_elf.optimizers, keras_elf.samplers"
PRESET = "from_preset('elf_nano_kjv')"
PROGRAMS = {  # what is timed, and what is done before
    "import keras": ("import keras", ""),
    "import keras_elf": ("import keras_elf", ""),
    "import layers, objectives, optimizers, samplers": (f"import {LIGHT}", ""),
    "import keras_elf.models": ("import keras_elf.models", ""),
    PRESET: (f"models.ELFGenerator.{PRESET}", "from keras_elf import models"),
}
CHILD = """
import json, time
exec({before!r})
start = time.perf_counter()
exec({program!r})
print(json.dumps(time.perf_counter() - start))
"""


def seconds(program, before=""):
    """Seconds that `program` takes in a fresh interpreter, after its start and `before`."""
    text = CHILD.format(program=program, before=before)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"`{program}` failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def run(settings):
    timed = timing.compare(
        {name: functools.partial(seconds, *texts) for name, texts in PROGRAMS.items()},
        settings.repeats,
    )
    # Nothing here depends on a size or a dtype.
    found, date = [], circumstances(settings)["date"]
    for name, figure in timed.items():
        figure["ratio"]["to"] = "import keras"
        found.append({"case": "import_time", "what": name, "date": date, **figure})
    return found
