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
from keras_elf.cli.plan import PACKINGS, TOKENIZERS, Plan, make_plan

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
            packing=options.packing,
            tokenizer=options.tokenizer,
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
                model, plan = building.new_model(plan, say, folder, _verbose(options))
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
    from keras_elf.cli.expected_time import ExpectedTime
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
    recipe = plan.recipe(len(dataset))
    model.compile(optimizer=recipe)
    say(
        f"{model.backbone.count_params():,} parameters, {len(dataset.rows):,} rows, "
        f"{plan.epochs} epochs of {len(dataset):,} steps of {plan.batch_size}: {total:,} steps"
    )
    say(
        f"Learning rate {recipe.learning_rate:.2g} after {recipe.warmup_steps} steps, decay "
        f"{recipe.decay}, averages {recipe.ema_momentum:.5g}; checkpoints and log in {folder}"
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
        # Before the log, which has its figure.
        callbacks.ReconstructionAccuracy(_some_rows(dataset)),
        ExpectedTime(total, say),
        callbacks.TrainingLog(folder / "log.csv", tensorboard=options.tensorboard),
    ]
    conditions, references = building.first_pairs(plan, plan.num_samples)
    if plan.sample_every_steps and not options.quiet:
        used.append(
            callbacks.SampleText(
                plan.sample_every_steps,
                plan.num_samples,
                inputs=conditions or None,
                references=references or None,
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
        said = ", ".join(f"{name.replace('_', ' ')} {v:.4g}" for name, v in losses.items())
        print(f"Trained {total:,} steps: {said}. Saved to {plan.output}.")
        hint = "--condition -" if conditions else "--num-samples 4"
        print(f"keras-elf generate --preset {shlex.quote(plan.output)} {hint}")
    return 0


def _some_rows(dataset):
    """A few rows whose tokens should come back from their latents."""
    batch = dataset.batch_at(0)
    return {name: batch[name][:32] for name in ("token_ids", "is_cond", "is_valid")}


def _parser():
    defaults = {field.name: field.default for field in dataclasses.fields(Plan)}
    words = [f"{name}={json.dumps(value)}".replace('"', "") for name, value in defaults.items()]
    names = textwrap.fill(" ".join(words), 80, initial_indent="  ", subsequent_indent="  ")
    parser = Parser(
        prog="keras-elf train",
        description="Train on text of your own: on a preset's weights, in a preset's sizes, or a "
        "small model made for the text, tokenizer and encoder with it. What is not said is "
        "chosen by the amount and length of the text, and told. Ctrl-C finishes the step, "
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
    parser.add_argument("--packing", choices=PACKINGS, help="a text a row, or rows filled up")
    parser.add_argument("--tokenizer", choices=TOKENIZERS, help="kind of a new tokenizer")
    parser.add_argument("--seed", type=int, help="same seed, same training")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    parser.add_argument("--tensorboard", help="directory for TensorBoard's event files")
    parser.add_imports()
    parser.add_argument("--quiet", action="store_true", help="no progress, no samples")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser
