"""`keras-elf generate`: text from a preset."""

import json

from keras_elf.cli import sampling
from keras_elf.cli.files import standard_input
from keras_elf.cli.parser import Parser, whole


def main(arguments=None):
    """Write text to standard output, one a line; returns 0."""
    options = _parser().parse_args(arguments)
    inputs = _conditions(options)
    from keras_elf import samplers
    from keras_elf.models import ELFGenerator

    if inputs is None and options.guidance_scale is not None:
        raise ValueError("--guidance-scale is on a condition: there is none")
    # A drawn seed is told too: what was written can be written again.
    seed = samplers.SampleNoise(options.seed).seed
    settings = {**sampling.settings(options), "seed": seed}
    elf = ELFGenerator.from_preset(options.preset)
    if options.infill and options.signal:
        raise ValueError("--signal is not for --infill")
    if options.infill:
        texts = elf.infill(inputs, **settings)
    elif inputs is None:
        texts = elf.generate(num_samples=options.num_samples, **settings)
    else:
        texts = elf.generate(inputs, **settings)
    for number, text in enumerate(texts):
        if options.json:
            line = {"text": text, "seed": seed}
            if inputs is not None:
                line["input"] = inputs[number]
            print(json.dumps(line, ensure_ascii=False))
        else:
            print(text.replace("\n", " "))
    return 0


def _conditions(options):
    """The texts to start from: a list, or `None` for unconditional text."""
    given = options.condition if options.infill is None else options.infill
    if given is None:
        return None
    if options.num_samples is not None:
        raise ValueError("--num-samples is for text without conditions: there is one for each")
    from keras_elf.data.sources.files import split_lines

    texts = []
    for text in given:
        if text == "-":
            texts += split_lines(standard_input())
        else:
            texts.append(text)
    texts = [text for text in texts if text.strip()]
    if not texts:
        raise ValueError("no condition was given: standard input is empty")
    return texts


def _parser():
    parser = Parser(
        prog="keras-elf generate",
        description="Write text, one a line, to standard output. What is not said is taken from "
        "the preset.",
        epilog="examples:\n"
        "  keras-elf generate --preset elf_nano_kjv --num-samples 4 --seed 0\n"
        "  echo 'Guten Morgen!' | keras-elf generate --preset elf_b_de_en --condition -\n"
        "  keras-elf generate --preset my_elf --infill 'The <mask:8> of the LORD'",
    )
    parser.add_argument("--preset", required=True, help="name, directory or hf:// handle")
    text = parser.add_mutually_exclusive_group()
    text.add_argument(
        "--condition", action="append", help="text to start from; '-' reads lines from a pipe"
    )
    text.add_argument("--infill", action="append", help="text with holes as <mask:8>; or '-'")
    parser.add_argument("--num-samples", type=whole(1), help="how many, without conditions")
    parser.add_imports()
    sampling.add_flags(parser)
    parser.add_argument("--seed", type=whole(0, 2**63 - 1), help="same seed, same text")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    return parser
