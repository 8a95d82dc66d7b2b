"""`keras-elf evaluate`: how good generated text is, as one report."""

import json
import sys

from keras_elf.cli.files import write_text
from keras_elf.cli.parser import Parser, real, whole


def main(arguments=None):
    """Print the report; returns 0."""
    options = _parser().parse_args(arguments)
    if options.num_samples is not None and (options.data or options.texts):
        raise ValueError("--num-samples is for unconditional text: there is one for each input")
    import keras_elf.evaluation as evaluation

    judge = None if options.judge == "none" else options.judge
    common = {"judge": judge, "seed": options.seed}
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
            **_settings(options),
        )
    if options.output is not None:
        write_text(options.output, report.to_json())
    if options.json:
        print(report.to_json())
    else:
        from rich.console import Console

        Console().print(report.table())
    return 0


def _settings(options):
    from keras_elf import samplers

    given = {
        "num_steps": options.num_steps,
        "guidance_scale": options.guidance_scale,
        "batch_size": options.batch_size,
        "sampler": options.sampler,
    }
    if options.gamma is not None:
        if options.sampler != "sde":
            raise ValueError("--gamma belongs to --sampler sde")
        given["sampler"] = samplers.SDESampler(options.gamma)
    return {name: value for name, value in given.items() if value is not None}


def _pairs(options):
    """Conditions and references of a data set; each is text."""
    from keras_elf.data.sources import open_source
    from keras_elf.data.sources.fields import Fields

    fields = Fields("auto", "auto")
    source = open_source(options.data, fields, split=options.split)
    inputs, references = [], []
    for place, record in source:
        condition, target = fields.pick(place, record)
        if not isinstance(condition, str) or not isinstance(target, str):
            raise ValueError(f"{place}: evaluation needs a condition and a target, both text")
        inputs.append(condition)
        references.append(target)
        if len(inputs) == options.limit:
            break
    if not inputs:
        raise ValueError(f"{options.data} holds no examples")
    return inputs, references


def _lines(path):
    try:
        if path == "-":
            content = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as stream:
                content = stream.read()
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from None
    if path.endswith((".jsonl", ".json")):
        lines = [_text(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]
    if not lines:
        raise ValueError(f"{path} holds no texts")
    return lines


def _text(line, place):
    try:
        text = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{place} is not valid JSON: {error}") from None
    text = text.get("text") if isinstance(text, dict) else text
    if not isinstance(text, str):
        raise ValueError(f"{place} must be a str or an object with 'text'")
    return text


def _parser():
    parser = Parser(
        prog="keras-elf evaluate",
        description="Write texts, or take those in a file, and report generative perplexity with "
        "entropy, or BLEU and ROUGE where there are references; repetition and diversity always. "
        "Collapsed text is flagged.",
        epilog="examples:\n"
        "  keras-elf evaluate --preset elf_b_owt --num-samples 1000 --output report.json\n"
        "  keras-elf evaluate --preset my_elf --data pairs.jsonl --limit 500\n"
        "  keras-elf generate --preset my_elf --num-samples 100 | keras-elf evaluate --texts - "
        "--judge none",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--preset", help="model that writes: name, directory or handle")
    what.add_argument("--texts", help="texts that are there: a file, one a line, .jsonl, or '-'")
    parser.add_argument("--references", help="with --texts: file of as many references")
    parser.add_argument("--data", help="with --preset: conditions and references, as for train")
    parser.add_argument("--split", default="test", help="of a TFDS data set (default: test)")
    parser.add_argument("--limit", type=whole(1), default=1000, help="most examples of --data")
    parser.add_argument("--num-samples", type=whole(1), help="unconditional texts (default 1000)")
    parser.add_argument(
        "--judge", default="auto", help="keras-hub causal language model, or 'none'"
    )
    parser.add_argument("--num-steps", type=whole(1), help="sampling steps")
    parser.add_argument("--sampler", choices=("ode", "sde"))
    parser.add_argument("--gamma", type=real(0), help="noise of the SDE sampler")
    parser.add_argument("--guidance-scale", type=real(), help="on the condition; 1 is none")
    parser.add_argument("--batch-size", type=whole(1), help="texts at once")
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), default=0)
    parser.add_argument("--output", help="also write the report as JSON to this file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser
