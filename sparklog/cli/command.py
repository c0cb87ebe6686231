"""The commands of the ``sparklog`` program, and their argument parser.

The command line depends on neither Spark nor the broker. ``start`` and ``demo`` are in other packages, and
register through the entry-point group ``sparklog.commands``. An entry point names a ``Command`` object, for
example ``start = "sparklog_runtime.commands:start_command"`` with ``start_command = Command(...)``.

A command is loaded only to run it or to show its help. So ``sparklog topics list`` does not import Spark, and
a plugin that cannot be imported does not break other commands.
"""

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, NoReturn

from sparklog.model.errors import SparklogError

COMMAND_GROUP: Final = "sparklog.commands"
"""The entry-point group in which installed packages name their commands."""

CONFIG_FLAGS: Final = ("-c", "--config")

_OPTION: Final = re.compile(r"--?[A-Za-z][^=]*")

DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2


class UsageError(SparklogError):
    """Options that contradict each other, or are incomplete; ends the program with status 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One subcommand.

    ``run`` gets the parsed arguments and returns the exit status. A SparklogError that it raises is printed
    on standard error as ``sparklog: <message>`` and ends the program with status 1; a ``UsageError``, or a
    ``ConfigError``, with 2.
    """

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    description: str = ""
    """The text of ``--help`` above the options; the summary if empty."""
    examples: tuple[str, ...] = ()
    """Whole command lines at the end of ``--help``."""


class Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are one line, with the option as it was typed and the remedy.

    What argparse says is printed, and never read: each release of Python has other words. Values that are
    none of several, and unknown arguments, are refused in words of our own.

    ``-c`` and ``--config`` accept several settings, as in ``--config a=1 b=2 NAME``.
    """

    _typed: Sequence[str] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, exit_on_error=False)

    def parse_args(  # type: ignore[override]  # what argparse's overloads say, in one
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        parsed, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._refuse_unknown(unknown)
        return parsed

    def parse_known_args(  # type: ignore[override]  # what argparse's overloads say, in one
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> Any:
        self._typed = one_setting_each(sys.argv[1:] if args is None else args)
        try:
            return super().parse_known_args(self._typed, namespace)
        except argparse.ArgumentError as error:
            if error.argument_name is None:
                self.error(error.message)
            self._refuse(f"{self._as_typed(error.argument_name)}: {error.message}")

    def error(self, message: str) -> NoReturn:
        """Refuse a line that lacks an argument, which argparse reports here; it may be the misspelt one."""
        if misspelt := self._unknown_options():
            self._refuse_unknown(misspelt)
        self._refuse(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            hint = did_you_mean(str(value), choices)
            raise argparse.ArgumentError(action, f"{value!r} is none of {', '.join(choices)}{hint}")

    def _refuse_unknown(self, arguments: Sequence[str]) -> NoReturn:
        hint = did_you_mean(arguments[0].partition("=")[0], _long_options(self))
        self._refuse(f"unrecognized arguments: {' '.join(arguments)}{hint}")

    def _refuse(self, problem: str) -> NoReturn:
        self.exit(WRONG_USAGE, f"{self.prog}: {problem}; see {self.prog} --help\n")

    def _unknown_options(self) -> list[str]:
        """The typed options that neither this parser nor a nested one has."""
        known, unknown = _options(self), []
        for argument in takewhile(lambda one: one != "--", self._typed):
            name = _OPTION.match(argument)
            is_short = name is not None and argument[:2] in known  # the value may follow at once: -ca=1
            if name is not None and name[0] not in known and not is_short:
                unknown.append(name[0])
        return unknown

    def _as_typed(self, names: str) -> str:
        """The name that was typed, of an option's names such as ``-c/--config``."""
        typed = {argument.partition("=")[0] for argument in self._typed}
        return next((name for name in names.split("/") if name in typed), names)


def _options(parser: argparse.ArgumentParser) -> list[str]:
    """The options of a parser and of its nested parsers."""
    found = list(parser._option_string_actions)
    for action in parser._actions:
        for nested in action.choices.values() if isinstance(action.choices, dict) else ():
            found += _options(nested)
    return found


def _long_options(parser: argparse.ArgumentParser) -> list[str]:
    return [option for option in _options(parser) if option.startswith("--")]


def did_you_mean(given: str, known: Sequence[str]) -> str:
    """A hint at the most similar name in ``known``, to append to an error text; empty if none is similar."""
    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(given.casefold(), by_folded, n=1)
    return f"; did you mean {by_folded[near[0]]}?" if near else ""


def build_parser(command: Command, program: str = "sparklog ") -> Parser:
    """The parser of ``sparklog <command> ...``."""
    parser = Parser(
        prog=f"{program}{command.name}",
        description=command.description or command.summary,
        epilog=examples_text(command.examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return parser


def one_setting_each(arguments: Sequence[str]) -> list[str]:
    """``--config a=1 b=2`` as ``--config a=1 --config b=2``; argparse would also consume a following NAME."""
    spread: list[str] = []
    flag = ""  # the option whose values are being read
    before = ""
    for argument in arguments:
        name = argument.partition("=")[0]
        if name in CONFIG_FLAGS:
            flag = name
        elif before not in CONFIG_FLAGS:
            flag = "" if argument.startswith("-") or "=" not in argument else flag
            spread += [flag] if flag else []
        spread.append(argument)
        before = argument
    return spread


def examples_text(examples: tuple[str, ...]) -> str:
    """Examples as help shows them."""
    return "\n".join(["examples:", *(f"  {example}" for example in examples)]) if examples else ""
