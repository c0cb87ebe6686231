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


def raising(error: Exception) -> Callable[[argparse.Namespace], int]:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


def test_it_tells_its_version(sparklog: Sparklog) -> None:
    assert sparklog("--version", connect=False).out == f"sparklog {__version__}\n"


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
