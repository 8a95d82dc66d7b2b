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
    parser.add_argument("--preset", dest="named", help="the same, as the other commands take it")
    parser.add_imports()
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    options.preset = options.named if options.preset is None else options.preset
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
    from keras_elf.presets import bundled, safety
    from keras_elf.presets.preset_directory import TASK, check_directory, check_network

    facts = {}
    if not os.path.isdir(preset):
        path = os.fspath(bundled.directory(preset))
        facts = bundled.information(preset)
    elif os.path.lexists(os.path.join(preset, TASK)):
        path = preset
        check_directory(path, load_weights=False, preprocessor=False)
    else:
        check_network(preset, load_weights=False)
        return _network_alone(preset)
    task = safety.read_json(path, "task.json")["config"]
    backbone = _sizes(task.pop("backbone")["config"])
    rows = (task.pop("preprocessor") or {"config": {}})["config"]
    encoder = task.pop("encoder") or {"class_name": "the unembedding's", "config": {}}
    sampler, objective = task.pop("sampler"), task.pop("objective")
    recipe = os.path.join(path, "recipe.json")
    return {
        **facts,
        **backbone,
        "encoder_class": encoder["class_name"],
        "sampler": {"class": sampler["class_name"], **sampler["config"]},
        "objective": objective["config"],
        "rows": {name: rows[name] for name in _ROWS if name in rows},
        "settings": {k: v for k, v in task.items() if k != "name"},
        "recipe": _read(_json, recipe) if os.path.isfile(recipe) else None,
        "manifest": _read(manifest.read, path),
    }


def _network_alone(path):
    from keras_elf.checkpoints import manifest
    from keras_elf.presets import safety
    from keras_elf.presets.preset_directory import CONFIG

    return {
        "holds": "the network alone, for keras_elf.ELFBackbone.from_preset",
        **_sizes(safety.read_json(path, CONFIG)["config"]),
        "manifest": _read(manifest.read, path),
    }


def _sizes(config):
    from keras_elf.models import parameter_count

    backbone = {k: v for k, v in config.items() if k not in ("name", "trainable", "dtype")}
    return {"parameters": parameter_count(**backbone), "backbone": backbone}


def _read(reader, path):
    try:
        facts = reader(path)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: what is told of the preset is damaged: {error}") from None
    if facts is not None and not isinstance(facts, dict):
        raise ValueError(f"{path}: what is told of the preset must be a JSON object")
    return facts


def _json(path):
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def _print(facts, listing):
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    if listing:
        table = Table("preset", "what it is", "parameters")
        # The name of a hub repository is cut nowhere.
        table.add_column("weights", overflow="fold")
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
