"""Trains `elf_nano_kjv`, the model in the package: clauses of the King James Bible.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 nice -n 19 \\
        python presets/train_elf_nano_kjv.py --state STATE --steps 2400
    python presets/train_elf_nano_kjv.py --state STATE --save presets/elf_nano_kjv

The first command starts a run and, given again, goes on with it: stopped at any moment, at most
four minutes are lost. `STATE/log.csv` holds the losses, `STATE/samples.jsonl` texts of each 100
steps. The second turns the newest checkpoint, finished or not, into a preset with its figures
(`preset.json`) and keeps the curve and the cost beside this script. All seeds are 0, or SEED.
"""

import argparse
import json
import os
import pathlib
import re
import time

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import keras_hub

import keras_elf

SEED = 0
VOCABULARY, LENGTH, BATCH = 2560, 24, 128
FEWEST_WORDS, MOST_WORDS = 5, 21
ENCODER = {"latent_dim": 96, "depth": 2, "num_heads": 4}
ENCODER_EPOCHS, ENCODER_BATCH = 5, 64
BACKBONE = {"latent_dim": 96, "depth": 5, "hidden_size": 192, "num_heads": 6, "bottleneck_dim": 64}
PREFIX = {"num_time_tokens": 2, "num_guidance_tokens": 2, "num_mode_tokens": 2}
PEAK, AVERAGES = 1e-2, 0.995
GENERATION = {"num_steps": 32, "self_cond_guidance_scale": 3.0}
# One verse of so many is never trained on.
HELD_OUT = 25
HERE = pathlib.Path(__file__).resolve().parent


def main():
    """Train, go on, or save; returns 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--state", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--steps", type=int, help="optimizer steps, fixed when the run starts")
    parser.add_argument("--save", type=pathlib.Path, help="folder of the preset to write")
    options = parser.parse_args()
    keras.utils.set_random_seed(SEED)
    if keras.backend.backend() == "torch":
        import torch

        # Numbers near 0 in gradients and averages cost a processor many times the others.
        torch.set_flush_denormal(True)
    options.state.mkdir(parents=True, exist_ok=True)
    plan = _plan(options)
    texts, held_out = clauses()
    preprocessor = _preprocessor(options.state, texts)
    texts, held_out = (_that_fit(t, preprocessor) for t in (texts, held_out))
    print(f"{len(texts):,} clauses to train on, {len(held_out):,} held out", flush=True)
    rows = preprocessor(texts)
    encoder, statistics = _encoder(options.state, rows)
    elf = _generator(plan, preprocessor, encoder, statistics)
    if options.save:
        return _save(options, plan, elf, texts, held_out)
    elf.fit(
        keras_elf.data.TokenBatches(rows, batch_size=BATCH, seed=SEED),
        epochs=-(-plan["steps"] // (len(texts) // BATCH)),
        shuffle=False,
        verbose=0,
        callbacks=[*_callbacks(options.state, resume=True), _StopAt(plan["steps"])],
    )
    return 0


def clauses():
    """The clauses to train on and those held out, from other verses.

    A verse is cut behind full stops, colons, semicolons, question and exclamation marks; what is
    still too long is cut at commas. Clauses of 5 to 21 words remain. The first letter becomes a
    capital, so that each reads as a text of its own; nothing else is changed.
    """
    kept, held_out = [], []
    for number, verse in enumerate(keras_elf.data.king_james_verses()):
        for sentence in re.split(r"(?<=[.;:?!])\s+", " ".join(verse.split())):
            for clause in _cut(sentence):
                if FEWEST_WORDS <= _words(clause) <= MOST_WORDS:
                    clause = clause[0].upper() + clause[1:]
                    (held_out if number % HELD_OUT == 0 else kept).append(clause)
    unseen = set(held_out)
    return [c for c in kept if c not in unseen], held_out


def _cut(sentence):
    """Parts of at most 21 words, as long as commas allow."""
    parts, current = [], ""
    for part in re.split(r"(?<=,)\s+", sentence):
        if current and _words(current) + _words(part) > MOST_WORDS:
            parts.append(current)
            current = ""
        current = f"{current} {part}".strip()
    return [*parts, current]


def _words(text):
    return len(re.findall(r"\w+(?:'\w+)*", text))


def _preprocessor(state, texts):
    path = state / "tokenizer.spm"
    if not path.exists():
        keras_elf.data.train_sentencepiece(
            texts, VOCABULARY, path, model_type="whole_words", character_coverage=1.0
        )
    tokenizer = keras_hub.models.T5Tokenizer(proto=path.read_bytes())
    return keras_elf.ELFPreprocessor(tokenizer, sequence_length=LENGTH)


def _that_fit(texts, preprocessor):
    """The clauses of which every word has a piece, and that end within the row."""
    ids = keras_elf.data.to_token_ids("clauses", texts, preprocessor.tokenizer)
    blank = preprocessor.tokenizer.token_to_id("\u2581")
    # A word without a piece is spelled by single letters, behind a piece for the blank alone or
    # a shorter word: more pieces than words and marks.
    fits = [
        blank not in row and len(row) < LENGTH and len(row) == len(re.findall(_PIECES, text))
        for row, text in zip(ids, texts, strict=True)
    ]
    return [text for text, good in zip(texts, fits, strict=True) if good]


_PIECES = r"\w+(?:'\w+)*|[^\w\s]"


def _encoder(state, rows):
    """The encoder, trained once, and the statistics of its latents."""
    encoder = keras_elf.encoders.TransformerEncoder(VOCABULARY, **ENCODER)
    weights, report = state / "encoder.weights.h5", state / "encoder.json"
    if report.exists():
        encoder.load_weights(weights)
        encoder.freeze()
        return encoder, json.loads(report.read_text())
    began = time.time()
    found = keras_elf.encoders.pretrain(
        encoder, rows, epochs=ENCODER_EPOCHS, batch_size=ENCODER_BATCH, seed=SEED, verbose=2
    )
    encoder.save_weights(weights)
    found = {"seconds": round(time.time() - began), **found}
    report.write_text(json.dumps(found, default=float))
    print(found, flush=True)
    return encoder, found


def _generator(plan, preprocessor, encoder, statistics):
    steps = plan["steps"]
    elf = keras_elf.ELFGenerator(
        keras_elf.ELFBackbone(vocabulary_size=VOCABULARY, **BACKBONE, **PREFIX),
        encoder,
        preprocessor,
        latent_mean=statistics["latent_mean"],
        latent_std=statistics["latent_std"],
        seed=SEED,
        **GENERATION,
    )
    schedule = keras_elf.optimizers.WarmupSchedule(
        PEAK, min(100, steps // 10), "linear", total_steps=steps, decay_steps=steps // 2
    )
    elf.compile(optimizer=keras_elf.optimizers.Muon(schedule, ema_momentum=AVERAGES))
    print(f"{elf.backbone.count_params():,} and {encoder.count_params():,} parameters", flush=True)
    return elf


def _plan(options):
    """What may not change between the parts of one run."""
    path = options.state / "plan.json"
    if path.exists():
        plan = json.loads(path.read_text())
        if options.steps not in (None, plan["steps"]):
            raise SystemExit(f"{path}: the run was started with --steps {plan['steps']}")
        return plan
    if options.steps is None:
        raise SystemExit("--steps is needed to start a run")
    plan = {"steps": options.steps, "backend": keras.backend.backend(), "seed": SEED}
    path.write_text(json.dumps(plan))
    return plan


def _callbacks(state, resume):
    return [
        keras_elf.callbacks.ResumableCheckpoint(
            state / "checkpoints", every_seconds=240, every_epoch=False, resume=resume, keep=2
        ),
        keras_elf.callbacks.TrainingLog(state / "log.csv", every_n_steps=20),
        keras_elf.callbacks.SampleText(100, 6, seed=SEED, path=state / "samples.jsonl"),
    ]


class _StopAt(keras.callbacks.Callback):
    """Ends the run at a step, wherever in an epoch that is."""

    def __init__(self, step):
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch, logs=None):
        if int(keras.ops.convert_to_numpy(self.model.optimizer.iterations)) >= self.step:
            self.model.stop_training = True


if __name__ == "__main__":
    raise SystemExit(main())
