"""`keras-elf import`: a released checkpoint to a Keras preset directory."""

import json

from keras_elf.cli.parser import Parser, whole


def main(arguments=None):
    """Run the import; returns 0."""
    options = _parser().parse_args(arguments)
    from keras_elf.checkpoints import import_checkpoint

    manifest = import_checkpoint(
        options.checkpoint,
        options.preset_dir,
        preset=options.preset,
        encoder=options.encoder,
        tokenizer=options.tokenizer,
        sequence_length=options.sequence_length,
        weights=options.weights,
    )
    if options.json:
        print(json.dumps(manifest, indent=2))
    else:
        _report(options.preset_dir, manifest)
    return 0


def _parser():
    parser = Parser(
        prog="keras-elf import",
        description="Convert a checkpoint of the public ELF code (a torch or flax msgpack file, "
        "or an orbax directory) into a Keras preset directory. Nothing of the file is executed; "
        "names, shapes and values are checked, and the preset is loaded again and compared.",
        epilog="Example: keras-elf import checkpoint_95000 my_elf --preset elf_b_owt --encoder "
        "t5-small, where t5-small is a directory with config.json, model.safetensors and "
        "spiece.model.",
    )
    parser.add_argument("checkpoint", help="file or directory to read")
    parser.add_argument("preset_dir", help="directory to write")
    parser.add_argument("--preset", help="published model it is, as elf_b_owt: its settings")
    parser.add_argument(
        "--encoder",
        help="T5: a directory of transformers, or a keras-hub preset; without it the network "
        "alone is converted",
    )
    parser.add_argument("--tokenizer", help="spiece.model, where it is not beside the encoder")
    parser.add_argument(
        "--sequence-length", type=whole(1), help="tokens in a row, without --preset"
    )
    parser.add_argument(
        "--weights", choices=("ema", "raw"), default="ema", help="averages (default) or raw"
    )
    parser.add_argument("--json", action="store_true", help="print the manifest")
    return parser


def _report(preset_dir, manifest):
    step = "" if manifest["step"] is None else f" of step {manifest['step']:,}"
    print(
        f"{manifest['format']} checkpoint{step}, {manifest['weights']} weights, "
        f"{manifest['parameters']:,} parameters: written to {preset_dir} and verified.\n"
        f'Load it with keras_elf.{manifest["holds"]}.from_preset("{preset_dir}").'
    )
