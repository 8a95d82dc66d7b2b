"""`keras-elf info`: the presets there are, or all that is known of one."""

import json

from keras_elf.cli.parser import Parser

_ROWS = ("sequence_length", "condition_length", "pad_with")


def main(arguments=None):
    """Print a table or JSON; returns 0."""
    parser = Parser(
        prog="keras-elf info",
        description="List the presets, or tell what one is: sizes, settings, training recipe, "
        "published figures, and where its weights came from. Nothing is downloaded.",
        epilog="examples:\n  keras-elf info\n  keras-elf info elf_b_owt --json",
    )
    parser.add_argument("preset", nargs="?", help="name or directory; without it a list")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    facts = _all() if options.preset is None else _one(options.preset)
    if options.json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        _print(facts, listing=options.preset is None)
    return 0


def _all():
    from keras_elf.models import ELFGenerator

    return ELFGenerator.presets


def _one(preset):
    import os

    from keras_elf.checkpoints import manifest
    from keras_elf.models import bundled, parameter_count, preset_safety
    from keras_elf.models.preset_directory import check_directory

    facts = {}
    if not os.path.isdir(preset):
        path = os.fspath(bundled.directory(preset))
        facts = bundled.information(preset)
    else:
        path = preset
        check_directory(path, load_weights=False, preprocessor=False)
    task = preset_safety.read_json(path, "task.json")["config"]
    backbone = task.pop("backbone")["config"]
    for name in ("name", "trainable", "dtype"):
        backbone.pop(name, None)
    rows = (task.pop("preprocessor") or {"config": {}})["config"]
    encoder = task.pop("encoder") or {"class_name": "the unembedding's", "config": {}}
    sampler, objective = task.pop("sampler"), task.pop("objective")
    recipe = os.path.join(path, "recipe.json")
    return {
        **facts,
        "parameters": parameter_count(**backbone),
        "backbone": backbone,
        "encoder_class": encoder["class_name"],
        "sampler": {"class": sampler["class_name"], **sampler["config"]},
        "objective": objective["config"],
        "rows": {name: rows[name] for name in _ROWS if name in rows},
        "settings": {k: v for k, v in task.items() if k != "name"},
        "recipe": _read(recipe) if os.path.isfile(recipe) else None,
        "manifest": manifest.read(path),
    }


def _read(path):
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def _print(facts, listing):
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    if listing:
        table = Table("preset", "what it is", "parameters", "weights")
        for name, known in facts.items():
            row = known["description"], f"{known['parameters']:,}", known["weights"]
            table.add_row(name, *row)
    else:
        for name, value in facts.items():
            if value in (None, {}, []):
                continue
            if isinstance(value, dict):
                value = "\n".join(f"{k}: {v}" for k, v in value.items())
            elif isinstance(value, list):
                value = "\n".join(", ".join(f"{k} {v}" for k, v in row.items()) for row in value)
            elif isinstance(value, int):
                value = f"{value:,}"
            table.add_row(name, str(value))
    Console().print(table)
