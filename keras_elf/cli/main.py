"""The command `keras-elf`: finds the subcommand, which parses the rest."""

import contextlib
import importlib
import os
import sys
import warnings

from keras_elf import checks
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
BACKENDS = ("jax", "torch", "tensorflow")
# Where arithmetic is the NaN that ended a training, and a runtime's error a want of memory.
MISTAKES = (ValueError, TypeError, OSError, ImportError, MemoryError, ArithmeticError, RuntimeError)
INTERRUPTED, NOBODY_READS = 130, 141
_EPILOGUE = """\
commands:
{commands}

`keras-elf COMMAND --help` tells the rest. KERAS_BACKEND chooses jax, torch or tensorflow.
Exit codes: 0 done, 2 something to mend in what was asked, 130 interrupted, 141 nobody reads on.
"""


def main(arguments=None):
    """Run a subcommand; returns its exit code."""
    os.environ["KERAS_BACKEND"] = os.environ.get("KERAS_BACKEND") or "jax"
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
    _open_missing_streams()
    with _one_line_warnings():
        _write_all_characters()
        try:
            checks.choice("KERAS_BACKEND", os.environ["KERAS_BACKEND"], BACKENDS)
            code = command.main(arguments[1:])
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            _drop_output()
            return NOBODY_READS
        except MISTAKES as error:
            message = " ".join(str(error).split()) or type(error).__name__
            print(f"keras-elf {name}: {message}", file=sys.stderr)
            _drop_output(only_if_broken=True)
            return 2
        except KeyboardInterrupt:
            print(f"keras-elf {name}: interrupted", file=sys.stderr)
            return INTERRUPTED


def _open_missing_streams():
    """Put the null device where a stream was closed: a file of ours would take its number."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            setattr(sys, name, open(os.devnull, "w"))


def _write_all_characters():
    """Have standard output take every character, and say so before the work and not after it."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("_", "-")
    if reconfigure is not None and not encoding.startswith("utf"):
        reconfigure(errors="backslashreplace")
        warnings.warn(
            f"standard output is written as {encoding}, which has no place for many letters: "
            "they appear as escapes such as \\u0434. PYTHONIOENCODING=utf-8 writes them as "
            "they are.",
            stacklevel=2,
        )


def _drop_output(only_if_broken=False):
    """Have what waits to be printed go nowhere: it would fail again when Python ends."""
    if only_if_broken:
        try:
            sys.stdout.flush()
            return
        except OSError:
            pass
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _one_line_warnings():
    """Within the block a warning is one line, once, without the place in the code."""
    said = set()

    def show(message, category, filename, lineno, file=None, line=None):
        text = " ".join(str(message).split())
        if text not in said:
            said.add(text)
            print(f"Warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


if __name__ == "__main__":
    raise SystemExit(main())
