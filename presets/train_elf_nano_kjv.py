"""Trains `elf_nano_kjv`, the model in the package: clauses of the King James Bible.

    KERAS_BACKEND=torch OMP_NUM_THREADS=1 nice -n 19 \\
        python presets/train_elf_nano_kjv.py --state STATE --steps 1400
    python presets/train_elf_nano_kjv.py --state STATE --save presets/elf_nano_kjv

The first command starts a run and, given again, goes on with it: stopped at any moment, at most
four minutes are lost. `STATE/log.csv` holds the losses, `STATE/samples.jsonl` texts of each 100
steps. The learning rate falls to 0 over the second half of the steps. Other `--steps` are taken
as long as the fall has not begun; `STATE/half` keeps the checkpoint from before it, with which
a longer run can be started: copy it into the `checkpoints` of a copy of STATE.

The second command turns the newest checkpoint, finished or not, into a preset with its figures
(`preset.json`), and writes the curve and the cost of the run beside this script (`elf_nano_kjv_
training.csv` and `.json`). All seeds are SEED.
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import shutil
import time

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import keras_hub
import numpy as np

import keras_elf

SEED = 0
VOCABULARY, LENGTH, BATCH = 2560, 24, 128
ENCODER = {"latent_dim": 96, "depth": 2, "num_heads": 4}
ENCODER_EPOCHS, ENCODER_BATCH = 4, 64
BACKBONE = {"latent_dim": 96, "depth": 5, "hidden_size": 192, "num_heads": 6, "bottleneck_dim": 64}
PREFIX = {"num_time_tokens": 2, "num_guidance_tokens": 2, "num_mode_tokens": 2}
PEAK, AVERAGES = 1e-2, 0.99
GENERATION = {"num_steps": 64, "self_cond_guidance_scale": 3.0}
HERE = pathlib.Path(__file__).resolve().parent


def main():
    """Train, go on, or save; returns 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--state", type=pathlib.Path, required=True, help="folder of the run")
    parser.add_argument("--steps", type=int, help="optimizer steps, fixed when the run starts")
    parser.add_argument("--save", type=pathlib.Path, help="folder of the preset to write")
    parser.add_argument("--samples", type=int, default=512, help="texts that --save judges")
    options = parser.parse_args()
    keras.utils.set_random_seed(SEED)
    if keras.backend.backend() == "torch":
        import torch

        # Numbers near 0 in gradients and averages cost a processor many times the others.
        torch.set_flush_denormal(True)
    options.state.mkdir(parents=True, exist_ok=True)
    plan = _plan(options)
    texts = keras_elf.data.king_james_clauses()
    held_out = keras_elf.data.king_james_clauses(held_out=True)
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
        callbacks=_callbacks(options.state, plan["steps"]),
    )
    return 0


def _preprocessor(state, texts):
    path = state / "tokenizer.spm"
    if not path.exists():
        keras_elf.data.train_sentencepiece(
            texts, VOCABULARY, path, model_type="whole_words", character_coverage=1.0
        )
    tokenizer = keras_hub.models.T5Tokenizer(proto=path.read_bytes())
    # Padding with the end token counts in the loss: the model learns how long a clause is.
    return keras_elf.ELFPreprocessor(tokenizer, sequence_length=LENGTH, pad_with="end")


def _that_fit(texts, preprocessor):
    """The clauses of which every word has a piece, and that end within the row."""
    known = set(keras_elf.data.king_james_clauses(preprocessor.tokenizer))
    known |= set(keras_elf.data.king_james_clauses(preprocessor.tokenizer, held_out=True))
    return [t for t in texts if t in known and len(preprocessor.tokenizer(t)) < LENGTH]


def _encoder(state, rows):
    """The encoder, trained once, and the statistics of its latents."""
    encoder = keras_elf.encoders.TransformerEncoder(VOCABULARY, **ENCODER)
    weights, report = state / "encoder.npz", state / "encoder.json"
    if report.exists():
        with np.load(weights) as arrays:
            encoder.set_weights([arrays[name] for name in arrays.files])
        encoder.freeze()
        return encoder, json.loads(report.read_text())
    began = time.time()
    found = keras_elf.encoders.pretrain(
        encoder,
        rows,
        epochs=ENCODER_EPOCHS,
        batch_size=ENCODER_BATCH,
        seed=SEED,
        verbose=2,
        unmasked_weight=0.3,
    )
    np.savez(weights, *encoder.get_weights())
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
    """What may not change between the parts of one run, but for the steps before their half."""
    path = options.state / "plan.json"
    if not path.exists() and options.steps is None:
        raise SystemExit("--steps is needed to start a run")
    plan = {"steps": options.steps, "backend": keras.backend.backend(), "seed": SEED}
    if path.exists():
        plan = json.loads(path.read_text())
        wanted, step = options.steps or plan["steps"], _newest_step(options.state)
        if wanted != plan["steps"] and step > min(wanted, plan["steps"]) // 2:
            raise SystemExit(
                f"{path}: the run was started with --steps {plan['steps']} and is at step {step}, "
                "where the learning rate falls already, or would have to"
            )
        plan["steps"] = wanted
    path.write_text(json.dumps(plan))
    return plan


def _newest_step(state):
    steps = [int(p.stem.split("-")[1]) for p in (state / "checkpoints").glob("step-*")]
    return max(steps, default=0)


def _callbacks(state, steps):
    if not _newest_step(state):
        # Records of a run that was stopped before its first checkpoint.
        for name in ("log.csv", "samples.jsonl", "cost.json"):
            (state / name).unlink(missing_ok=True)
    checkpoint = keras_elf.callbacks.ResumableCheckpoint(
        state / "checkpoints",
        every_n_steps=steps // 2,
        every_seconds=240,
        every_epoch=False,
        resume=True,
        keep=2,
        # The number of steps is one of the settings; `_plan` says when it may change.
        strict=False,
    )
    return [
        checkpoint,
        keras_elf.callbacks.TrainingLog(state / "log.csv", every_n_steps=20),
        keras_elf.callbacks.SampleText(100, 6, seed=SEED, path=state / "samples.jsonl"),
        _Course(state, steps),
    ]


class _Course(keras.callbacks.Callback):
    """Keeps the checkpoint at half the steps, ends the run at the last, counts what it costs."""

    def __init__(self, state, steps):
        super().__init__()
        self.state, self.steps = state, steps
        self.path = state / "cost.json"

    def on_train_begin(self, logs=None):
        self.before = {"cpu_seconds": 0.0, "wall_seconds": 0.0, "starts": 0}
        if self.path.exists():
            self.before = json.loads(self.path.read_text())
        self.cpu, self.wall = time.process_time(), time.monotonic()

    def on_train_batch_end(self, batch, logs=None):
        step = int(keras.ops.convert_to_numpy(self.model.optimizer.iterations))
        half = self.state / "checkpoints" / f"step-{self.steps // 2:010d}.checkpoint"
        # One step later, when it is written for sure and not yet replaced.
        if step == self.steps // 2 + 1 and half.exists():
            (self.state / "half").mkdir(exist_ok=True)
            shutil.copy(half, self.state / "half")
        if step >= self.steps:
            self.model.stop_training = True
        if step % 20 == 0 or step >= self.steps:
            cost = {
                "cpu_seconds": self.before["cpu_seconds"] + time.process_time() - self.cpu,
                "wall_seconds": self.before["wall_seconds"] + time.monotonic() - self.wall,
                "starts": self.before["starts"] + 1,
            }
            self.path.write_text(json.dumps(cost))


def _save(options, plan, elf, texts, held_out):
    """Write the preset, its figures, and beside this script the curve and the cost."""
    checkpoint = keras_elf.callbacks.ResumableCheckpoint(
        options.state / "checkpoints", resume=True, strict=False
    )
    step = checkpoint.restore(elf)["step"]
    losses = elf.evaluate(held_out, batch_size=BATCH, return_dict=True, verbose=0)
    elf.save_to_preset(options.save)
    # What was saved is measured, not what was trained.
    elf = keras_elf.ELFGenerator.from_preset(str(options.save))
    samples = elf.generate(num_samples=options.samples, seed=SEED, batch_size=BATCH, verbose=False)
    real = held_out[:: max(1, len(held_out) // len(samples))][: len(samples)]
    tokenize = elf.preprocessor.tokenizer
    known = set(texts)
    entropy = {
        name: round(keras_elf.evaluation.unigram_entropy([t for t in some if t], tokenize), 3)
        for name, some in (("samples", samples), ("held_out", real))
    }
    distinct = {
        name: round(keras_elf.evaluation.distinct_n(some, 2), 3)
        for name, some in (("samples", samples), ("held_out", real))
    }
    figures = {
        "data": f"{len(held_out)} clauses of verses not trained on",
        "decode_loss": round(losses["decode_loss"], 3),
        "denoise_loss": round(losses["denoise_loss"], 3),
        **GENERATION,
        "samples": len(samples),
        "unigram_entropy": entropy["samples"],
        "unigram_entropy_held_out": entropy["held_out"],
        "distinct_2": distinct["samples"],
        "distinct_2_held_out": distinct["held_out"],
        "copied_whole": round(float(np.mean([t in known for t in samples])), 3),
        "repeated_in_source": round(_copied(texts), 3),
    }
    cost = json.loads((options.state / "cost.json").read_text())
    encoder = json.loads((options.state / "encoder.json").read_text())
    training = {
        "seed": SEED,
        "steps": step,
        "planned_steps": plan["steps"],
        "batch_size": BATCH,
        "clauses": len(texts),
        "backend": plan["backend"],
        "encoder_seconds": encoder["seconds"],
        "encoder_loss": [round(float(x), 3) for x in encoder["loss"]],
        **{name: round(value) for name, value in cost.items()},
    }
    facts = {
        "description": "A nano ELF on clauses of the King James Bible, whole words as pieces: "
        "for trying things out, no network needed",
        "parameters": elf.backbone.count_params(),
        "license": "Apache-2.0",
        "paper": "arXiv 2605.10938",
        "weights": "in the package",
        "encoder": "in the package",
        "published": [figures],
    }
    (options.save / "preset.json").write_text(json.dumps(facts, indent=2) + "\n")
    record = {**training, "figures": figures, "first_samples": samples[:20]}
    (HERE / "elf_nano_kjv_training.json").write_text(json.dumps(record, indent=2) + "\n")
    _write_curve(options.state / "log.csv", HERE / "elf_nano_kjv_training.csv")
    print(json.dumps(record, indent=2))
    return 0


def _copied(texts):
    """Share of clauses that occur more than once: how often the source copies itself."""
    counts = collections.Counter(texts)
    return sum(n for n in counts.values() if n > 1) / len(texts)


def _write_curve(log, target, every=100):
    """The mean losses of each 100 steps."""
    sums = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(log, newline="") as file:
        for row in csv.DictReader(file):
            block = -(-int(row["step"]) // every) * every
            for name in ("denoise_loss", "decode_loss", "learning_rate"):
                if row[name]:
                    sums[block][name].append(float(row[name]))
    with open(target, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["step", "denoise_loss", "decode_loss", "learning_rate"])
        for block, means in sums.items():
            writer.writerow([block, *(f"{np.mean(v):.4f}" for v in means.values())])


if __name__ == "__main__":
    raise SystemExit(main())
