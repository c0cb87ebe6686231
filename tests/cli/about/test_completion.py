"""The shells' completion, as bash itself carries it out."""

import shutil
import subprocess
from argparse import SUPPRESS
from pathlib import Path

import pytest

from sparklog.cli.about.completion import SHELLS, shell_script
from sparklog.cli.command import WRONG_USAGE, build_parser
from sparklog.cli.main import main
from sparklog.cli.registry import command_names, load_command

DRIVER = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_sparklog
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "sparklog.bash"
    path.write_text(shell_script("bash"))
    return path


def offered(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    command = ["bash", "-c", DRIVER, "driver", str(script), "sparklog", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ran.stderr == ""
    return ran.stdout.split()


def test_every_command_is_offered_and_each_of_its_options(script: Path) -> None:
    assert set(command_names()) <= set(offered(script, ""))
    for name in command_names():
        actions = build_parser(load_command(name))._actions
        shown = {one for action in actions if action.help != SUPPRESS for one in action.option_strings}
        assert shown - {"-h", "-c"} <= set(offered(script, name, "--")), name


def test_actions_and_their_options_are_offered_wherever_other_options_stand(script: Path) -> None:
    assert offered(script, "topics", "cr") == ["create"]
    assert offered(script, "topics", "--root", "list", "cr") == ["create"]
    assert offered(script, "topics", "create", "t", "--part") == ["--partitions"]
    assert offered(script, "topics", "create", "--partitions", "3", "--repl") == ["--replication-factor"]
    assert "--partitions" not in offered(script, "topics", "list", "--")


def test_choices_and_directories_are_offered_for_the_value_of_an_option(script: Path, tmp_path: Path) -> None:
    assert offered(script, "produce", "--acks", "") == ["all", "-1", "1", "0"]
    assert "cooperative-sticky" in offered(script, "consume", "--assignor", "co")
    (tmp_path / "cluster").mkdir()
    (tmp_path / "file").touch()
    assert offered(script, "status", "--root", f"{tmp_path}/") == [f"{tmp_path}/cluster"]
    assert offered(script, "consume", "--topic", "c") == []
    assert offered(script, "completion", "z") == ["zsh"]


def test_a_value_that_is_called_like_an_action_is_none(script: Path) -> None:
    assert offered(script, "groups", "describe", "--root", "delete", "--json", "--bootst") == [
        "--bootstrap-server"
    ]
    assert offered(script, "produce", "--topic", "consume", "--ac") == ["--acks"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_of_its_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert ("bashcompinit" in out) is (shell == "zsh")
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n"], input=out, text=True, check=True, timeout=60)


def test_another_shell_is_refused_with_those_there_are(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == WRONG_USAGE
    assert "'fish' is none of bash, zsh" in capfd.readouterr().err
