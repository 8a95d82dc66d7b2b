"""The command `keras-elf`: finds the subcommand, which parses the rest."""

import argparse
import os
import sys

COMMANDS = {
    "import": ("keras_elf.cli.import_checkpoint", "convert a released checkpoint to a preset"),
    "demo": ("keras_elf.cli.demo", "train a small ELF on the bundled verses and let it write"),
}


def main(arguments=None):
    """Run a subcommand; returns its exit code: 0, or 2 for what the user can mend."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(
        prog="keras-elf",
        description="ELF, Embedded Language Flows, from the command line.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="commands:\n"
        + "\n".join(f"  {name:<8} {about}" for name, (_, about) in COMMANDS.items())
        + "\n\nkeras-elf COMMAND --help tells the rest. KERAS_BACKEND chooses jax, torch or "
        "tensorflow.",
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="see below")
    parser.add_argument("--version", action="version", version=_version())
    options = parser.parse_args(arguments[:1])
    import importlib

    command = importlib.import_module(COMMANDS[options.command][0])
    try:
        return command.main(arguments[1:])
    except (ValueError, OSError, ImportError) as error:
        print(f"keras-elf {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"keras-elf {options.command}: interrupted", file=sys.stderr)
        return 130


def _version():
    from keras_elf.version import __version__

    return f"keras-elf {__version__}"


if __name__ == "__main__":
    raise SystemExit(main())
