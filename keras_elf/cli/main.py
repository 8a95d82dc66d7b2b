"""The command `keras-elf`: finds the subcommand, which parses the rest."""

import importlib
import os
import sys

from keras_elf.cli.parser import Parser
from keras_elf.version import __version__

# Name: (module, what it does).
COMMANDS = {
    "train": ("train", "train on text of your own"),
    "generate": ("generate", "write text, with or without conditions"),
    "evaluate": ("evaluate", "how good generated text is"),
    "info": ("info", "what a preset is, or which there are"),
    "import": ("import_checkpoint", "convert a released checkpoint to a preset"),
    "demo": ("demo", "train a small ELF on the bundled verses and let it write"),
}
_EPILOGUE = """\
commands:
{commands}

`keras-elf COMMAND --help` tells the rest. KERAS_BACKEND chooses jax, torch or tensorflow.
Exit codes: 0 done, 2 something to mend in what was asked, 130 interrupted.
"""


def main(arguments=None):
    """Run a subcommand; returns its exit code."""
    os.environ.setdefault("KERAS_BACKEND", "jax")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    commands = "\n".join(f"  {name:<9} {about}" for name, (_, about) in COMMANDS.items())
    parser = Parser(
        prog="keras-elf",
        description="ELF, Embedded Language Flows, from the command line.",
        epilog=_EPILOGUE.format(commands=commands),
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="see below")
    parser.add_argument("--version", action="version", version=f"keras-elf {__version__}")
    name = parser.parse_args(arguments[:1]).command
    command = importlib.import_module(f"keras_elf.cli.{COMMANDS[name][0]}")
    try:
        return command.main(arguments[1:])
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        message = " ".join(str(error).split()) or type(error).__name__
        print(f"keras-elf {name}: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"keras-elf {name}: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
