"""Finding the command, parsing its arguments, running it, and printing its error."""

import os
import sys
from collections.abc import Callable
from typing import Final

from sparklog.cli.about.version import VERSION_LINE
from sparklog.cli.command import DONE, FAILED, WRONG_USAGE, Command, UsageError, build_parser, examples_text
from sparklog.cli.registry import command_names, load_command
from sparklog.model.errors import ConfigError, KafkaError, SparklogError

EXAMPLES: Final = (
    "sparklog demo                                        see it work, in a minute or two",
    "sparklog start --brokers 3 --root /tmp/sparklog      a cluster on this machine, in the foreground",
    "sparklog topics create events --partitions 3 --replication-factor 3 --root /tmp/sparklog",
    "echo hello | sparklog produce --topic events --root /tmp/sparklog",
    "sparklog consume --topic events --from-beginning --bootstrap-server 127.0.0.1:9092",
    "sparklog status --root /tmp/sparklog --json",
)


def run_program(arguments: list[str], on_loaded: Callable[[], None]) -> int:
    """Run the program; the exit status. ``on_loaded`` is called just before the command runs."""
    return exit_status_of(lambda: _run(arguments, on_loaded), program="sparklog")


def exit_status_of(run: Callable[[], int], *, program: str) -> int:
    """Call ``run``; the exit status. An error is printed on standard error as ``program: message``."""
    try:
        status = run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()  # the reader of our output closed the pipe, which is no error
        return DONE
    except (UsageError, ConfigError) as error:
        return _complain(program, error, WRONG_USAGE)
    except KafkaError as error:
        return _complain(program, _words_of(error), FAILED)
    except SparklogError as error:
        return _complain(program, error, FAILED)
    except OSError as error:  # such as standard output on a full disk
        _silence_stdout()
        return _complain(program, error, FAILED)
    return status


def _run(arguments: list[str], on_loaded: Callable[[], None]) -> int:
    first = arguments[0] if arguments else "--help"
    if first in ("-h", "--help", "help") and len(arguments) <= 1:
        print(_overview())
        return DONE if arguments else WRONG_USAGE
    if first == "help":
        arguments = [arguments[1], "--help"]
    if first == "--version":
        print(VERSION_LINE)
        return DONE
    if arguments[0].startswith("-"):
        raise UsageError(f"unknown option {arguments[0]!r} before the command; see sparklog --help")
    command = load_command(arguments[0])
    try:
        parsed = build_parser(command).parse_args(arguments[1:])
    except SystemExit as stop:  # argparse has printed its help or its complaint
        return stop.code if isinstance(stop.code, int) else WRONG_USAGE
    on_loaded()
    return command.run(parsed)


def _overview() -> str:
    lines = [
        "usage: sparklog COMMAND [options]",
        "",
        "A Spark-native replicated log that speaks Kafka's protocol.",
    ]
    lines += ["", "commands:"]
    width = max(map(len, command_names()))
    lines += [f"  {name:<{width}} {_summary(name)}" for name in command_names()]
    lines += [
        "",
        "  sparklog COMMAND --help    explains a command",
    ]
    return "\n".join([*lines, "", examples_text(EXAMPLES)])


def _summary(name: str) -> str:
    try:
        command: Command = load_command(name)
    except SparklogError as error:
        return f"(not available: {error})"
    return command.summary


def _words_of(error: KafkaError) -> str:
    """The message, with the code's name unless the message contains it."""
    code = error.code.name.upper()
    return error.message if code in error.message else f"{error.message} ({code})" if error.message else code


def _complain(program: str, problem: object, status: int) -> int:
    print(f"{program}: {problem}", file=sys.stderr)
    return status


def _silence_stdout() -> None:
    """Redirect standard output to /dev/null, because Python flushes it once more at exit."""
    if sys.stdout is None:  # it was closed before we began
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
