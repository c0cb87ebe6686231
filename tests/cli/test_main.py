"""The program finds commands, explains itself, and says what went wrong where and how it should."""

import argparse
import subprocess
import sys
import types
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from sparklog import __version__
from sparklog.cli import registry
from sparklog.cli.command import DONE, FAILED, WRONG_USAGE, Command, UsageError
from sparklog.model.errors import ConfigError, ErrorCode, KafkaError, SparklogError

Sparklog = Callable[..., Any]
Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Pretends that these commands, by name, are brought by installed packages; a string is a broken one."""

    def install_all(**commands: Command | str) -> None:
        module = types.ModuleType("pretended_plugins")
        points = []
        for name, command in commands.items():
            setattr(module, name, command)
            target = command if isinstance(command, str) else f"pretended_plugins:{name}"
            points.append(EntryPoint(name, target, "sparklog.commands"))
        monkeypatch.setitem(sys.modules, "pretended_plugins", module)
        found = EntryPoints(points)
        monkeypatch.setattr(registry, "entry_points", lambda **wanted: found.select(**wanted))

    return install_all


def command(run: Callable[[argparse.Namespace], int]) -> Command:
    return Command(name="fly", summary="rise into the air", add_arguments=lambda _: None, run=run)


def raising(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


def test_it_tells_its_version(sparklog: Sparklog) -> None:
    for word in ("--version", "version"):
        assert sparklog(word, connect=False).out == f"sparklog {__version__}\n"


def test_python_runs_it_as_a_module() -> None:
    command = [sys.executable, "-m", "sparklog", "version"]
    assert subprocess.check_output(command, text=True, timeout=60) == f"sparklog {__version__}\n"


def test_help_lists_every_command_and_shows_examples(sparklog: Sparklog) -> None:
    ran = sparklog("--help", connect=False)
    assert ran.status == DONE
    for name in ("start", "demo", "status", "topics", "produce", "consume"):
        assert f"  {name} " in ran.out
    assert "sparklog topics create events" in ran.out


def test_without_a_command_the_help_is_shown_and_the_usage_is_wrong(sparklog: Sparklog) -> None:
    ran = sparklog(connect=False)
    assert ran.status == WRONG_USAGE
    assert "usage: sparklog COMMAND" in ran.out


@pytest.mark.parametrize("words", [("help", "topics"), ("topics", "--help")])
def test_each_command_explains_itself_with_examples(words: tuple[str, ...], sparklog: Sparklog) -> None:
    ran = sparklog(*words, connect=False)
    assert ran.status == DONE
    assert "usage: sparklog topics" in ran.out
    assert "examples:" in ran.out


def test_a_mistyped_command_is_wrong_usage_with_the_nearest_one(sparklog: Sparklog) -> None:
    ran = sparklog("topcis", connect=False)
    assert ran.status == WRONG_USAGE
    assert ran.err == "sparklog: there is no command 'topcis'; did you mean 'topics'?\n"


def test_a_mistyped_option_is_wrong_usage(sparklog: Sparklog) -> None:
    assert sparklog("--jsn", connect=False).status == WRONG_USAGE
    ran = sparklog("topics", "list", "--jsn")
    assert ran.status == WRONG_USAGE
    assert "--jsn" in ran.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("produce --topc t", "sparklog produce: unrecognized arguments: --topc; did you mean --topic?;"),
        (
            "configs describe --topc=t",
            "configs describe: unrecognized arguments: --topc; did you mean --topic?;",
        ),
        ("reassign execute --pln x", "unrecognized arguments: --pln; did you mean --plan?;"),
        ("topics create --partition 3", "unrecognized arguments: --partition; did you mean --partitions?;"),
        ("topics --jsn", "unrecognized arguments: --jsn; did you mean --json?;"),
        ("topics create -ca=1", "the following arguments are required: NAME"),
        ("produce --partition 1 -- --topc", "the following arguments are required: --topic"),
    ],
)
def test_a_misspelt_option_is_named_before_one_that_is_missing(
    words: str, complaint: str, sparklog: Sparklog
) -> None:
    ran = sparklog(*words.split(), connect=False)
    assert ran.status == WRONG_USAGE
    assert complaint in ran.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            "topics lst",
            "list|describe|alter|delete: 'lst' is none of create, list, describe, alter, delete; did",
        ),
        ("topics li't", '"li\'t" is none of create, list, describe, alter, delete; did you mean list?;'),
        ("produce --topc t", "sparklog produce: unrecognized arguments: --topc; did you mean --topic?;"),
        ("topics list --jsn", "sparklog topics: unrecognized arguments: --jsn; did you mean --json?;"),
        ("consume --topic t --offset x", "sparklog consume: --offset: 'x' is not a whole number from 0 on;"),
    ],
)
def test_mistakes_are_explained_alike_whatever_the_words_of_argparse(
    words: str, complaint: str, sparklog: Sparklog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(argparse, "_", lambda text: f"in other words: {text}")
    ran = sparklog(*words.split(), connect=False)
    assert ran.status == WRONG_USAGE
    assert complaint in ran.err


def test_an_installed_command_is_found_and_run(sparklog: Sparklog, install: Install) -> None:
    install(fly=command(lambda _: DONE))
    assert sparklog("fly", connect=False).status == DONE
    assert "rise into the air" in sparklog("--help", connect=False).out


def test_a_broken_plugin_breaks_nobody_but_itself(sparklog: Sparklog, install: Install) -> None:
    install(fly="no_such_package:command", swim=command(lambda _: DONE))
    assert sparklog("swim", connect=False).status == DONE
    assert "not available" in sparklog("--help", connect=False).out
    ran = sparklog("fly", connect=False)
    assert ran.status == FAILED
    assert "'fly' cannot be loaded from no_such_package:command: ModuleNotFoundError" in ran.err


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (SparklogError("it rained"), FAILED, "sparklog: it rained\n"),
        (UsageError("wings or rotor?"), WRONG_USAGE, "sparklog: wings or rotor?\n"),
        (ConfigError("wings=3: must be even"), WRONG_USAGE, "sparklog: wings=3: must be even\n"),
        (
            KafkaError(ErrorCode.policy_violation, "no-fly zone"),
            FAILED,
            "sparklog: no-fly zone (POLICY_VIOLATION)\n",
        ),
    ],
)
def test_errors_go_to_standard_error_with_the_status_of_their_kind(
    error: Exception, status: int, text: str, sparklog: Sparklog, install: Install
) -> None:
    install(fly=command(raising(error)))
    ran = sparklog("fly", connect=False)
    assert (ran.status, ran.out, ran.err) == (status, "", text)


def test_a_reader_that_has_had_enough_is_no_error() -> None:
    program = "from sparklog.cli.main import main; raise SystemExit(main(['--help']))"
    ran = subprocess.run(
        ["/bin/sh", "-c", f'{sys.executable} -c "{program}" | true'],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ran.stderr == b""


RUN_AND_INTERRUPT = """
import os, signal, sys
from sparklog.cli.main import main

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
wanted = sys.argv.pop(1)
sys.exit(main())
"""


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, check=False, timeout=60, text=True
    )


@pytest.mark.parametrize(
    "module",
    ["argparse", "sparklog.model.errors", "sparklog.cli.program", "sparklog.cli.logs.topics.command", "uuid"],
)
def test_ctrl_c_while_the_program_loads_ends_it_with_130_and_no_traceback(module: str) -> None:
    ran = run_python(RUN_AND_INTERRUPT, module, "topics", "list", "--root", "/nowhere")
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "sparklog: interrupted\n")


def test_ctrl_c_in_the_middle_of_a_command_is_130_too(sparklog: Sparklog, install: Install) -> None:
    install(fly=command(raising(KeyboardInterrupt())))
    ran = sparklog("fly", connect=False)
    assert (ran.status, ran.err) == (130, "sparklog: interrupted\n")


def test_a_command_hears_ctrl_c_as_python_has_it_and_an_ignored_one_stays_ignored() -> None:
    program = """
import signal, sys
from sparklog.cli import main as entry
from sparklog.cli.command import Command
signal.signal(signal.SIGINT, getattr(signal, sys.argv.pop(1)))
def run(_):
    print(repr(signal.getsignal(signal.SIGINT)))
    return 0
import sparklog.cli.program as program
program.load_command = lambda name: Command(name=name, summary="", add_arguments=lambda _: None, run=run)
sys.exit(entry.main())
"""
    assert "default_int_handler" in run_python(program, "default_int_handler", "fly").stdout
    assert "SIG_IGN" in run_python(program, "SIG_IGN", "fly").stdout


def test_what_is_loaded_before_ctrl_c_is_heard_is_as_little_as_can_be() -> None:
    program = """
import re, signal, sys  # as the script of an entry point does
before = set(sys.modules)
import sparklog.cli.main
print(*sorted(sys.modules.keys() - before))
"""
    assert run_python(program).stdout == "sparklog sparklog.cli sparklog.cli.main\n"


def test_the_program_does_not_wait_for_hypothesis_where_that_is_installed() -> None:
    program = (
        "import sys; from sparklog.cli.main import main; main(['--help']); print('hypothesis' in sys.modules)"
    )
    assert run_python(program).stdout.endswith("\nFalse\n")
    program = f"import hypothesis; {program}"
    assert run_python(program).stdout.endswith("\nTrue\n")
