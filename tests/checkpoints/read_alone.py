"""Run as a script: opens and reads checkpoints with little memory and without frameworks.

Standard input: JSON, {"root": project, "memory": bytes, "paths": {name: path}}. Output: JSON,
name -> [kind of error or "read", message, seconds].
"""

import json
import resource
import sys
import time
import types

# numpy is allowed, the frameworks that wrote the files are not.
FORBIDDEN = {"keras", "torch", "tensorflow", "jax", "flax", "orbax", "tensorstore"}


def main():
    task = json.load(sys.stdin)
    # The readers alone: `keras_elf/__init__` would import Keras and its backend.
    for name in ("keras_elf", "keras_elf.checkpoints"):
        package = types.ModuleType(name)
        package.__path__ = [f"{task['root']}/{name.replace('.', '/')}"]
        sys.modules[name] = package
    from keras_elf.checkpoints.opening import open_checkpoint

    used = 1024 * int(open("/proc/self/status").read().split("VmSize:")[1].split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (used + task["memory"],) * 2)
    results = {}
    for name, path in task["paths"].items():
        start = time.perf_counter()
        try:
            opened = open_checkpoint(path)
            for weights in opened.weights.values():
                for reference in weights.values():
                    reference.read()
            outcome = ["read", ""]
        except BaseException as error:
            outcome = [type(error).__name__, str(error)]
        results[name] = [*outcome, time.perf_counter() - start]
    imported = sorted(FORBIDDEN & set(sys.modules))
    json.dump({"results": results, "imported": imported}, sys.stdout)


if __name__ == "__main__":
    main()
