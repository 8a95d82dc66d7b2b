"""An argument parser that says mistakes in one line and knows what was meant."""

import argparse
import difflib
import importlib
import os
import sys

from keras_elf import checks


class Parser(argparse.ArgumentParser):
    """`argparse.ArgumentParser` with one-line errors, exit code 2, and no silent surprises.

    Flags may not be abbreviated, nor given twice (argparse takes the last) unless they collect,
    and an unknown one is answered with the nearest.
    """

    def __init__(self, **kwargs):
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **kwargs)

    def add_imports(self):
        """Give the command `--import`, for presets with parts of one's own."""
        self.add_argument(
            "--import",
            dest="modules",
            action="append",
            metavar="MODULE",
            help="a module with parts of your own, from here or from the Python path",
        )

    def parse_args(self, args=None, namespace=None):
        args = sys.argv[1:] if args is None else list(args)
        self._refuse_repeated(args)
        # What is not a flag may stand between flags.
        options, rest = self.parse_known_intermixed_args(args, namespace)
        if rest:
            self.error(self._unknown(rest[0]))
        for module in getattr(options, "modules", None) or ():
            _imported(module)
        return options

    def error(self, message):
        message = " ".join(message.split()).removeprefix("argument ")
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _flags(self):
        return {flag: action for action in self._actions for flag in action.option_strings}

    def _refuse_repeated(self, args):
        seen = set()
        for argument in args:
            if argument == "--":
                break
            action = self._flags().get(argument.split("=", 1)[0])
            # Those that count or collect may be given again.
            if action is None or isinstance(
                action, (argparse._AppendAction, argparse._CountAction)
            ):
                continue
            if action.dest in seen:
                self.error(f"{action.option_strings[-1]} is given twice")
            seen.add(action.dest)

    def _unknown(self, argument):
        if not argument.startswith("-"):
            return f"there is no use for {argument!r}"
        flag = argument.split("=", 1)[0]
        near = difflib.get_close_matches(flag, self._flags(), n=1)
        return f"there is no flag {flag}" + (f"; did you mean {near[0]}?" if near else "")


def _imported(module):
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        importlib.import_module(module.removesuffix(".py").replace(os.sep, "."))
    except Exception as error:
        # It is the user's own code: whatever it raises is said in one line.
        raise ValueError(
            f"--import {module} failed: {type(error).__name__}: {error}. Name a module, as in "
            "`import MODULE`, that lies here or on the Python path"
        ) from error


def whole(minimum=None, maximum=None):
    """An argparse `type`: a whole number in a range."""
    return _number(int, checks.integer, minimum, maximum)


def real(minimum=None, maximum=None):
    """An argparse `type`: a finite number in a range."""
    return _number(float, checks.number, minimum, maximum)


def _number(kind, check, minimum, maximum):
    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = text
        try:
            return check("value", value, minimum, maximum)
        except ValueError as error:
            message = str(error).removeprefix("`value` ")
            raise argparse.ArgumentTypeError(message) from None

    return parse
