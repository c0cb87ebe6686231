"""``sparklog security``: what it prints, and how it refuses."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.cli.main import main


@pytest.fixture
def run(capsys):
    """Status, output and errors of ``sparklog security``."""

    def run_it(*words: str):
        status = main(["security", *words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run_it


def certificates(text: str):
    return {one["file"]: one for one in json.loads(text)["certificates"]}


def test_a_folder_is_made_shown_and_renewed(run, tmp_path: Path) -> None:
    folder = str(tmp_path / "security")
    status, out, err = run("init", folder, "--host", "broker-1", "10.0.0.7", "--json")
    assert status == DONE
    assert "give ca.pem and client.properties to users" in err
    made = certificates(out)
    assert list(made) == ["ca.pem", "broker.pem", "admin.pem"]
    assert made["broker.pem"]["subject"] == "CN=broker"
    assert set(made["broker.pem"]["names"]) == {"broker-1", "10.0.0.7", "localhost", "127.0.0.1"}
    assert made["admin.pem"]["names"] == made["ca.pem"]["names"] == []
    ends = datetime.strptime(made["broker.pem"]["not_after"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert timedelta(days=364) < ends - datetime.now(UTC) <= timedelta(days=365)
    assert certificates(run("show", folder, "--json")[1]) == made
    before = Path(folder, "broker.pem").read_text()
    status, out, _ = run("renew", folder, "--host", "broker-2", "--json")
    assert status == DONE
    assert set(certificates(out)["broker.pem"]["names"]) == {*made["broker.pem"]["names"], "broker-2"}
    assert Path(folder, "broker.pem").read_text() != before
    assert certificates(out)["ca.pem"] == made["ca.pem"]


def test_a_table_is_for_people(run, tmp_path: Path) -> None:
    status, out, _ = run("init", str(tmp_path / "security"), "--host", "a")
    assert status == DONE
    assert out.splitlines()[0].split() == ["FILE", "SUBJECT", "NAMES", "NOT", "AFTER"]
    assert "broker.pem  CN=broker" in out


def test_what_cannot_be_is_refused_with_its_reason(run, tmp_path: Path) -> None:
    folder = str(tmp_path / "security")
    assert run("init", folder)[0] == WRONG_USAGE
    status, _, err = run("init", folder, "--host", "a:9092")
    assert (status, "'a:9092' is no name and no address of a host" in err) == (WRONG_USAGE, True)
    status, _, err = run("show", folder)
    assert (status, "name a folder that sparklog security init has made" in err) == (FAILED, True)
    assert run("init", folder, "--host", "a")[0] == DONE
    status, _, err = run("init", folder, "--host", "a")
    assert (status, "has an authority already" in err) == (FAILED, True)
    Path(folder, "broker.pem").write_text("damaged")
    status, _, err = run("renew", folder)
    assert (status, "broker.pem has no certificate" in err) == (FAILED, True)
