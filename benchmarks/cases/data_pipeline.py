"""How fast text becomes batches, next to a training step that uses them up.

The data must not be what limits training.
"""

import tempfile
import time
import warnings

from benchmarks import sizes, timing
from benchmarks.cases import circumstances

ABOUT = "tokens a second from the Bible's verses to batches, against a training step of `fit`"
STEPS = 5


def run(settings):
    import keras_hub

    import keras_elf

    size = settings.shape
    verses = keras_elf.data.king_james_verses()[: 2000 if settings.size == "tiny" else None]
    words, definitions = keras_elf.data.wordnet_definitions()
    pairs = [
        {"condition": word, "target": definition}
        for word, definition in zip(words, definitions, strict=True)
    ][: len(verses)]
    # A vocabulary of T5's size needs more text than the package holds.
    vocabulary = min(size.vocabulary_size, 8000)
    proto = keras_elf.data.train_sentencepiece(verses[:8000], vocabulary)
    tokenizer = keras_hub.models.T5Tokenizer(proto=proto)
    arguments = {"sequence_length": size.length, "batch_size": size.batch}
    speeds = {}
    with tempfile.TemporaryDirectory() as cache, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*were too long.*")
        load = keras_elf.data.load_dataset
        start = time.perf_counter()
        data = load(verses, tokenizer, **arguments)
        passed = time.perf_counter() - start
        speeds["tokenize and pack, once a corpus"] = [len(data.rows.documents.tokens) / passed]
        load(verses, tokenizer, cache_dir=cache, **arguments)
        sources = {
            "packed batches, in memory": data,
            "packed batches, mapped from disk": load(
                verses, tokenizer, cache_dir=cache, **arguments
            ),
            "condition and target": load(pairs, tokenizer, **arguments),
        }
        for _ in range(settings.repeats):
            for name, source in sources.items():
                speeds.setdefault(name, []).append(batches_per_s(source) * size.tokens)
        speeds["training step within fit"] = step_speeds(data, settings)
    return [_figure(settings, name, values, speeds) for name, values in speeds.items()]


def _figure(settings, name, values, speeds):
    tokens = settings.shape.tokens
    step = timing.spread(speeds["training step within fit"])["median"]
    times = timing.spread([tokens / speed for speed in values])
    return {
        "case": "data_pipeline",
        "what": name,
        **circumstances(settings),
        "time_s": times,
        "tokens": tokens,
        "tokens_per_s": tokens / times["median"],
        "share_of_step": times["median"] * step / tokens,
    }


def batches_per_s(source):
    """Batches a second over one epoch."""
    start = time.perf_counter()
    number = sum(1 for _ in source)
    return number / (time.perf_counter() - start)


def step_speeds(data, settings):
    """Tokens a second of each training step within `fit`, the data's share included."""
    import keras

    elf = sizes.generator(settings.shape, settings.dtype)
    times = []

    class Clock(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            float(logs["loss"])  # wait for the step
            times.append(time.perf_counter())

    steps = STEPS + 3  # The first ones compile.
    elf.fit(data, steps_per_epoch=steps, shuffle=False, verbose=0, callbacks=[Clock()])
    passed = [b - a for a, b in zip(times[2:], times[3:], strict=False)]
    return [settings.shape.tokens / seconds for seconds in passed]
