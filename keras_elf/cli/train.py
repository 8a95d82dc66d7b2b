"""`keras-elf train`: text in, a preset out, with a run that can be interrupted."""

import contextlib
import dataclasses
import json
import shlex
import shutil
import sys
import textwrap

from keras_elf.cli import run_directory
from keras_elf.cli.backend import prepare
from keras_elf.cli.files import write_text
from keras_elf.cli.parser import Parser
from keras_elf.cli.plan import Plan, make_plan

INTERRUPTED = 130


def main(arguments=None):
    """Train and save; returns 0, or 130 if interrupted with everything saved."""
    options = _parser().parse_args(arguments)
    say = (lambda line: None) if options.quiet else lambda line: print(line, file=sys.stderr)
    if options.resume:
        plan = run_directory.saved_plan(options)
    else:
        plan = make_plan(
            options.recipe,
            options.settings,
            data=options.data,
            preset=options.preset,
            output=options.output,
            seed=options.seed,
        )
    folder = run_directory.folder(plan)
    if not options.resume:
        run_directory.refuse_used(folder, plan.output)
    return _train(plan, folder, options, say)


def _train(plan, folder, options, say):
    from keras_elf.cli import building

    prepare(plan.seed)
    with run_directory.nothing_left(folder) as run:
        start = folder / "start"
        if not start.is_dir():
            building.check_data(plan)
            # Made at once: a place that cannot be written is found before the work.
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / "plan.json", json.dumps(dataclasses.asdict(plan), indent=2))
            # Standard output is for the result.
            with contextlib.redirect_stdout(sys.stderr):
                model = building.new_model(plan, say, folder, _verbose(options))
            if model is None:
                return INTERRUPTED
            # A resumed run starts from the very same tokenizer, encoder and first weights.
            model.save_to_preset(start)
            shutil.rmtree(folder / "encoder", ignore_errors=True)
        return _fit(plan, folder, options, say, run)


def _verbose(options):
    # In a file a line an epoch is enough.
    return 0 if options.quiet else 1 if sys.stderr.isatty() else 2


def _fit(plan, folder, options, say, run):
    from keras_elf import callbacks
    from keras_elf.cli import building
    from keras_elf.models import ELFGenerator

    model = ELFGenerator.from_preset(folder / "start", dtype=plan.dtype, seed=plan.seed)
    run["model"] = model
    dataset = building.load(plan, model.preprocessor)
    validation = None
    if plan.validation is not None:
        # All of it counts, however little there is.
        whole = {"shuffle": False, "drop_remainder": False, "keep_remainder": True}
        validation = building.load(plan, model.preprocessor, plan.validation, **whole)
    total = plan.epochs * len(dataset)
    model.compile(optimizer=_optimizer(plan, len(dataset), total))
    say(
        f"{model.backbone.count_params():,} parameters, {len(dataset.rows):,} rows, "
        f"{plan.epochs} epochs of {len(dataset):,} steps; checkpoints and log in {folder}"
    )
    interrupt = callbacks.InterruptSafely(hint=run_directory.how_to_resume(folder))
    used = [
        callbacks.ResumableCheckpoint(
            folder / "checkpoints",
            every_n_steps=plan.save_every_steps or None,
            resume=True,
        ),
        interrupt,
        callbacks.StopOnNaN(),
        callbacks.TrainingLog(folder / "log.csv", tensorboard=options.tensorboard),
    ]
    conditions = _some_conditions(model, dataset, plan.num_samples)
    if plan.sample_every_steps and not options.quiet:
        used.append(
            callbacks.SampleText(
                plan.sample_every_steps,
                plan.num_samples,
                inputs=conditions,
                path=folder / "samples.jsonl",
                num_steps=plan.num_steps,
                print_fn=say,
            )
        )
    with contextlib.redirect_stdout(sys.stderr):
        history = model.fit(
            dataset,
            epochs=plan.epochs,
            validation_data=validation,
            shuffle=False,
            callbacks=used,
            verbose=_verbose(options),
        )
    if interrupt.interrupted:
        return INTERRUPTED
    model.save_to_preset(plan.output)
    losses = {name: values[-1] for name, values in history.history.items()}
    if options.json:
        print(json.dumps({"preset": plan.output, "steps": total, **losses}))
    else:
        said = ", ".join(f"{name} {value:.4g}" for name, value in losses.items())
        print(f"Trained {total:,} steps: {said}. Saved to {plan.output}.")
        hint = "--condition -" if conditions else "--num-samples 4"
        print(f"keras-elf generate --preset {shlex.quote(plan.output)} {hint}")
    return 0


def _optimizer(plan, steps_per_epoch, total):
    from keras_elf.optimizers import Muon, WarmupSchedule

    warmup = plan.warmup_steps
    if plan.warmup_epochs is not None:
        warmup = round(plan.warmup_epochs * steps_per_epoch)
    decay = {}
    if plan.decay != "constant" and total > 2:
        # A short run warms up for no more than a tenth of it.
        warmup = min(warmup, total // 10)
        decay = {"decay": plan.decay, "total_steps": total}
        if plan.decay == "linear":
            decay["decay_steps"] = max(1, total // 3)
    return Muon(
        WarmupSchedule(plan.peak_learning_rate, warmup, **decay),
        global_clipnorm=plan.global_clipnorm,
        ema_momentum=plan.ema_momentum,
    )


def _some_conditions(model, dataset, count):
    """Conditions of the first rows as token ids, or `None` where there are none."""
    batch = dataset.batch_at(0)
    rows = zip(batch["token_ids"], batch["is_cond"], strict=True)
    conditions = [ids[given].tolist() for ids, given in rows if given.any()]
    return conditions[:count] or None


def _parser():
    defaults = {field.name: field.default for field in dataclasses.fields(Plan)}
    words = [f"{name}={json.dumps(value)}".replace('"', "") for name, value in defaults.items()]
    names = textwrap.fill(" ".join(words), 80, initial_indent="  ", subsequent_indent="  ")
    parser = Parser(
        prog="keras-elf train",
        description="Train on text of your own: on a preset's weights, in a preset's sizes, or a "
        "small model made for the text, tokenizer and encoder with it. Ctrl-C finishes the step, "
        "saves, and says how to go on.",
        epilog="examples:\n"
        "  keras-elf train --data my_text.txt --output my_elf\n"
        "  keras-elf train --data pairs.jsonl --output my_elf target=answer condition=question\n"
        "  keras-elf train --recipe elf_b_owt --data corpus.jsonl --output big batch_size=64\n"
        "  keras-elf train --resume --output my_elf\n\n"
        f"settings, in a recipe file (YAML) or as name=value, with their defaults:\n{names}\n"
        "`python -c 'import keras_elf.cli.plan as p; help(p.Plan)'` tells what each is.",
    )
    parser.add_argument("settings", nargs="*", metavar="name=value", help="see below")
    parser.add_argument("--recipe", help="YAML file, or a published preset: how it was trained")
    parser.add_argument("--data", help="file, directory or tfds:NAME to train on")
    parser.add_argument("--preset", help="model to train on: name, directory or handle")
    parser.add_argument("--output", help=f"preset to write (default: {Plan.output})")
    parser.add_argument("--seed", type=int, help="same seed, same training")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    parser.add_argument("--tensorboard", help="directory for TensorBoard's event files")
    parser.add_argument("--quiet", action="store_true", help="no progress, no samples")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser
