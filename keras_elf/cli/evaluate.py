"""`keras-elf evaluate`: how good generated text is, as one report."""

import json

from keras_elf.cli import sampling
from keras_elf.cli.files import check_file, standard_input, write_text
from keras_elf.cli.parser import Parser, whole

SPLIT, LIMIT = "test", 1000


def main(arguments=None):
    """Print the report; returns 0."""
    options = _parser().parse_args(arguments)
    _check(options)
    import keras_elf.evaluation as evaluation

    judge = None if options.judge == "none" else options.judge
    corpus = None
    if options.corpus is not None:  # training skips blank lines too
        corpus = [text for text in _lines(options.corpus) if text.strip()]
    common = {"judge": judge, "seed": options.seed, "corpus": corpus}
    if options.texts is not None:
        references = None if options.references is None else _lines(options.references)
        report = evaluation.evaluate_generation(
            _lines(options.texts), references=references, **common
        )
    else:
        inputs = references = None
        if options.data is not None:
            inputs, references = _pairs(options)
        report = evaluation.evaluate_generation(
            options.preset,
            inputs,
            references,
            num_samples=options.num_samples,
            **common,
            **sampling.settings(options),
        )
    if options.output is not None:
        write_text(options.output, report.to_json())
    if options.json:
        print(report.to_json())
    else:
        from rich.console import Console

        Console().print(report.table())
    return 0


# What goes with --texts alone, with --preset alone, and with --preset and --data.
_TEXTS = ("references",)
_PAIRS_ALONE = "guidance_scale"
_WRITING = ("data", "num_samples", *(f for f in sampling.FLAGS if f != _PAIRS_ALONE))
_PAIRS = ("split", "limit", "target", "condition", _PAIRS_ALONE)


def _check(options):
    """Refuse flags that would do nothing, and an --output that would fail after the work."""
    for names, needed in (
        (_TEXTS, None if options.texts else "--texts"),
        ((*_WRITING, *_PAIRS), "--preset" if options.texts else None),
        (_PAIRS, None if options.data else "--data"),
    ):
        given = [name for name in names if getattr(options, name) is not None]
        if needed and given:
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ValueError(f"{flags} would do nothing without {needed}")
    if options.num_samples is not None and options.data:
        raise ValueError("--num-samples is for unconditional text: there is one for each input")
    if options.output is not None:
        check_file("--output", options.output)


def _pairs(options):
    """Conditions and references of a data set; each is text."""
    from keras_elf.data.sources import open_source
    from keras_elf.data.sources.fields import Fields

    fields = Fields(options.target or "auto", options.condition or "auto")
    source = open_source(options.data, fields, split=options.split or SPLIT)
    inputs, references = [], []
    for place, record in source:
        condition, target = fields.pick(place, record)
        if not isinstance(condition, str) or not isinstance(target, str):
            raise ValueError(f"{place}: evaluation needs a condition and a target, both text")
        inputs.append(condition)
        references.append(target)
        if len(inputs) == (options.limit or LIMIT):
            break
    if not inputs:
        raise ValueError(f"{options.data} holds no examples")
    return inputs, references


def _lines(path):
    """The texts of a file or of standard input, one a line; what `generate --json` writes too."""
    from keras_elf.data.sources.files import read_lines, split_lines, stem_extension

    if path == "-":
        lines = split_lines(standard_input())
    else:
        lines = [line.removesuffix("\n").removesuffix("\r") for _, line in read_lines(path)]
    if stem_extension(path) in (".jsonl", ".json") or (path == "-" and _is_json(lines)):
        lines = [_text(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]
    if not lines:
        raise ValueError(f"{path} holds no texts")
    return lines


def _is_json(lines):
    """Whether each line is an object with a text, as `keras-elf generate --json` writes."""
    try:
        objects = [json.loads(line) for line in lines if line.strip()]
    except (ValueError, RecursionError):
        return False
    return bool(objects) and all(isinstance(o, dict) and "text" in o for o in objects)


def _text(line, place):
    from keras_elf.data.sources.fields import standard_value

    try:
        text = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place} is not valid JSON: {error}") from None
    text = text.get("text") if isinstance(text, dict) else text
    if not isinstance(text, str):
        raise ValueError(f"{place} must be a str or an object with 'text'")
    return standard_value(place, "text", text)[0]


def _parser():
    parser = Parser(
        prog="keras-elf evaluate",
        description="Write texts, or take those in a file, and report generative perplexity with "
        "entropy, or BLEU, ROUGE and exact match where there are references; "
        "repetition and diversity always. "
        "Collapsed text is flagged.",
        epilog="examples:\n"
        "  keras-elf evaluate --preset elf_b_owt --num-samples 1000 --output report.json\n"
        "  keras-elf evaluate --preset my_elf --data pairs.jsonl --limit 500\n"
        "  keras-elf evaluate --preset my_elf --data qa.csv --condition question --target answer\n"
        "  keras-elf generate --preset my_elf --num-samples 100 | keras-elf evaluate --texts - "
        "--judge none",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--preset", help="model that writes: name, directory or handle")
    what.add_argument("--texts", help="texts that are there: a file, one a line, .jsonl, or '-'")
    parser.add_argument("--references", help="with --texts: file of as many references")
    parser.add_argument(
        "--corpus", help="file of texts to be like, one a line, such as those trained on"
    )
    parser.add_argument("--data", help="with --preset: conditions and references, as for train")
    parser.add_argument("--target", help="field of --data with the references")
    parser.add_argument("--condition", help="field of --data to write from")
    parser.add_argument("--split", help=f"of a TFDS data set (default: {SPLIT})")
    parser.add_argument("--limit", type=whole(1), help=f"examples of --data (default: {LIMIT})")
    parser.add_argument("--num-samples", type=whole(1), help="unconditional texts (default 1000)")
    parser.add_argument(
        "--judge", default="auto", help="keras-hub causal language model, or 'none'"
    )
    parser.add_imports()
    sampling.add_flags(parser)
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), default=0)
    parser.add_argument("--output", help="also write the report as JSON to this file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser
