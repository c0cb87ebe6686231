"""What a command of the ``sparklog`` program is, and where commands come from.

The command line itself knows neither Spark nor the broker: ``start`` and ``demo`` live in other packages and
join through the entry-point group ``sparklog.commands``. An entry point there names a ``Command`` object, for
example ``start = "sparklog_runtime.commands:start_command"`` with ``start_command = Command(...)``.

A command is loaded only when it is run or when its help is shown, so that ``sparklog topics list`` does not
pay for importing Spark, and a plugin that cannot be imported breaks nobody but itself.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import SparklogError

COMMAND_GROUP: Final = "sparklog.commands"
"""The entry-point group in which installed packages name their commands."""

DONE: Final = 0
FAILED: Final = 1
WRONG_USAGE: Final = 2


class UsageError(SparklogError):
    """Options that make no sense together; ends the program with status 2."""


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
    """What ``--help`` shows above the options; the summary if empty."""
    examples: tuple[str, ...] = ()
    """Whole command lines that ``--help`` shows at its end."""


def build_parser(command: Command) -> argparse.ArgumentParser:
    """The parser of ``sparklog <command> ...``."""
    parser = argparse.ArgumentParser(
        prog=f"sparklog {command.name}",
        description=command.description or command.summary,
        epilog=examples_text(command.examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return parser


def examples_text(examples: tuple[str, ...]) -> str:
    """Examples as help shows them."""
    return "\n".join(["examples:", *(f"  {example}" for example in examples)]) if examples else ""
