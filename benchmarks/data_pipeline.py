"""How fast text becomes batches, next to a training step of the nano model.

    KERAS_BACKEND=jax python -m benchmarks.data_pipeline

Prints tokens a second for tokenizing (once a corpus), for batches from tokens in memory and from
tokens mapped from disk, and for whole training steps on those batches; then the share of a step
that its batch costs. The data must not be what limits training: on two busy cores batches came
several hundred times faster than the steps on CPUs used them up. Takes about two minutes.
"""

import argparse
import os
import tempfile
import time
import warnings

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import keras_hub  # noqa: E402

import keras_elf  # noqa: E402
from benchmarks.cases import SIZES, model  # noqa: E402

SIZE = SIZES["nano"]


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data_pipeline", description=__doc__)
    parser.add_argument("--steps", type=int, default=10, help="timed training steps")
    steps = parser.parse_args().steps
    verses = keras_elf.data.king_james_verses()
    words, definitions = keras_elf.data.wordnet_definitions()
    pairs = [
        {"condition": word, "target": definition}
        for word, definition in zip(words, definitions, strict=True)
    ]
    proto = keras_elf.data.train_sentencepiece(verses[:8000], SIZE["vocabulary"])
    tokenizer = keras_hub.models.T5Tokenizer(proto=proto)
    tokens = SIZE["batch"] * SIZE["length"]
    speeds = {}
    warnings.filterwarnings("ignore", message=".*were too long.*")
    with tempfile.TemporaryDirectory() as cache:
        arguments = {"sequence_length": SIZE["length"], "batch_size": SIZE["batch"]}
        seconds, data = timed(lambda: keras_elf.data.load_dataset(verses, tokenizer, **arguments))
        speeds["tokenize and pack"] = len(data.rows.documents.tokens) / seconds
        mapped = [
            keras_elf.data.load_dataset(verses, tokenizer, cache_dir=cache, **arguments)
            for _ in range(2)
        ][-1]
        conditional = keras_elf.data.load_dataset(pairs, tokenizer, **arguments)
        for name, source in (
            ("packed batches, in memory", data),
            ("packed batches, from disk", mapped),
            ("condition and target", conditional),
        ):
            seconds, _ = timed(lambda source=source: sum(1 for _ in source))
            speeds[name] = tokens * len(source) / seconds
        speeds[f"nano training step ({keras.backend.backend()})"] = tokens / step_seconds(
            data, steps
        )
    step = list(speeds.values())[-1]
    for name, speed in speeds.items():
        print(f"{name:40} {speed:14,.0f} tokens/s {speed / step:10.1f} x the step")
    for name in list(speeds)[1:-1]:
        print(f"{name:40} takes {step / speeds[name]:.2%} of a step's time")
    return 0


def timed(function):
    """Seconds that a function takes, and its result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def step_seconds(data, steps):
    """Seconds of a training step within `fit`, the data's share included."""
    elf = model("nano")
    times = []

    class Clock(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            float(logs["loss"])  # wait for the step
            times.append(time.perf_counter())

    elf.fit(data, steps_per_epoch=steps + 3, shuffle=False, verbose=0, callbacks=[Clock()])
    # The first ones compile.
    return (times[-1] - times[2]) / (len(times) - 3)


if __name__ == "__main__":
    raise SystemExit(main())
