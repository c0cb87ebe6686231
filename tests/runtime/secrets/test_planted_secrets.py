"""Passwords and keys of a cluster with every kind of them are in their files alone, and the run's token in
the plans of brokers alone.
"""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from sparklog.cli.command import DONE, FAILED, WRONG_USAGE
from sparklog.credentials.references import resolve
from tests.runtime.conftest import PROGRAM, Started
from tests.runtime.secrets.planted import ENCRYPTED, Planted, has_word

pytestmark = [pytest.mark.integration, pytest.mark.proof, pytest.mark.timeout(900)]

KEEPS_PLANS = """
import os, pickle
from sparklog_runtime.life.local_cluster import LocalCluster
plans_of = LocalCluster._plans
def kept(self, token, control_port):
    plans = plans_of(self, token, control_port)
    with open(os.environ["KEPT_PLANS"], "wb") as file:
        file.write(b"".join(pickle.dumps(plan) + repr(plan).encode() for plan in plans))
    with open(os.environ["KEPT_PLANS"] + ".token", "w") as file:
        file.write(token)
    return plans
LocalCluster._plans = kept
"""
JOB = Path(__file__).parent / "job_of_alice.py"
LOOKS_EVERY_S = 0.5
LOOKED_AT = (
    r"^cluster\.json$",
    r"^cluster/logs/broker-1\.log$",
    r"^cluster/logs/controller\.log$",
    r"^cluster/audit/.*\.jsonl$",
    r"^cluster/zookeeper/",
    r"^events/",
    r"^job/eventlog_v2_",
    r"^job/page_environment_$",
    r"^job/shown.txt$",
)
"""Files that would have secrets, if any had."""


class Scene:
    """A secured cluster that runs; ``looked_through`` is the folder of all that it and its users wrote."""

    def __init__(self, folder: Path) -> None:
        self.planted = Planted(folder / "planted")
        self.looked_through = folder / "shown"
        self.looked_through.mkdir()
        self.plans = folder / "plans"
        self.root = self.looked_through / "cluster"
        self._command_lines: set[bytes] = set()

    def spark_conf(self) -> str:
        """A folder of Spark's settings, by which the application of brokers writes its events, too."""
        folder, events = self.looked_through / "conf", self.looked_through / "events"
        folder.mkdir()
        events.mkdir()
        settings = {"enabled": "true", "compress": "false", "dir": f"file:{events}"}
        lines = [f"spark.eventLog.{name} {value}\n" for name, value in settings.items()]
        (folder / "spark-defaults.conf").write_text("".join(lines))
        return str(folder)

    def look_at_processes(self) -> None:
        """Their command lines, as every user of the machine sees them."""
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                self._command_lines.add((entry / "cmdline").read_bytes())

    def sparklog(self, name: str, words: str, command_config: Path, status: int = DONE) -> None:
        where = ("--root", str(self.root), "--command-config", str(command_config))
        self.run(name, ("-m", "sparklog", *words.split(), *where), status)

    def run(self, name: str, words: Sequence[str], status: int = DONE) -> None:
        """A program of Python, whose output is kept, and which is looked at while it runs."""
        output = self.looked_through / f"{name}.out"
        with output.open("wb") as stream:
            environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}  # Spark's Python has sparklog
            process = subprocess.Popen(
                [sys.executable, *words], stdout=stream, stderr=stream, env=environment
            )
            while process.poll() is None:
                self.look_at_processes()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LOOKS_EVERY_S)
        assert process.returncode == status, output.read_text()[-4_000:]

    def contents(self) -> Iterator[tuple[str, bytes]]:
        for path in sorted(self.looked_through.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(self.looked_through)), path.read_bytes()
        yield "command lines of processes", b"\n".join(self._command_lines)


@pytest.fixture
def scene(
    tmp_path: Path, launch: Callable[[list[str], Path], Started], monkeypatch: pytest.MonkeyPatch
) -> tuple[Scene, Started]:
    scene = Scene(tmp_path)
    monkeypatch.setenv("KEPT_PLANS", str(scene.plans))
    settings = scene.planted.command_config("server", scene.planted.settings_of_brokers())
    arguments = ["--root", str(scene.root), "--brokers", "2", "--port", "0", "--settings", str(settings)]
    with pytest.MonkeyPatch.context() as of_brokers:
        of_brokers.setenv("SPARK_CONF_DIR", scene.spark_conf())
        cluster = launch([sys.executable, "-c", KEEPS_PLANS + PROGRAM, *arguments], scene.root)
    cluster.wait_ready()
    return scene, cluster


def test_no_secret_is_anywhere_but_in_its_file_and_the_token_in_the_plans(
    scene: tuple[Scene, Started],
) -> None:
    here, cluster = scene
    administrate(here)
    run_job(here, cluster.cluster()["bootstrap_servers"])
    for server in (*cluster.cluster()["brokers"], *cluster.cluster()["controllers"]):
        with urllib.request.urlopen(f"http://127.0.0.1:{server['metrics_port']}/metrics") as answer:
            (here.looked_through / f"metrics-{server['port']}").write_bytes(answer.read())
    here.look_at_processes()
    (here.looked_through / "cluster.json").write_bytes((here.root / "cluster.json").read_bytes())
    status, out, err = cluster.stop()
    assert status == 0
    (here.looked_through / "start.out").write_text(out + err)
    assert set(here.planted.found_in(here.planted.contents())) == here.planted.words.keys() - ENCRYPTED
    token, plans = Path(f"{here.plans}.token").read_text(), here.plans.read_bytes()
    assert has_word(plans, token)
    assert here.planted.found_in(plans) == []
    contents = dict(here.contents())
    found = {name: words for name, content in contents.items() if (words := here.planted.found_in(content))}
    assert found == {}
    assert [name for name, content in contents.items() if has_word(content, token)] == []
    names = "\n".join(contents)
    assert [pattern for pattern in LOOKED_AT if not re.search(pattern, names, re.MULTILINE)] == []


def administrate(here: Scene) -> None:
    planted = here.planted
    admin = planted.command_config("admin", planted.client("admin", "PLAIN", "admin"))
    password = planted.folder / "alice.txt"
    password.write_text(planted.words["alice"])
    here.sparklog("user", f"users add alice --mechanism SCRAM-SHA-512 --password-file {password}", admin)
    here.sparklog("users", "users list --json", admin)
    for topic in ("of-alice", "streamed-of-alice"):
        here.sparklog(f"create-{topic}", f"topics create {topic} --partitions 2", admin)
        rule = f"acls add --principal User:alice --operation all --topic {topic}"
        here.sparklog(f"rule-{topic}", rule, admin)
    here.sparklog("configs", "configs describe --broker 1 --json", admin)
    for name, properties, status in (
        ("wrong-password", planted.client("admin", "PLAIN", "guessed"), FAILED),
        ("wrong-scram", planted.client("alice", "SCRAM-SHA-512", "guessed"), FAILED),
        ("wrong-key", planted.client("admin", "PLAIN", "admin") | planted.of_a_key("guessed"), WRONG_USAGE),
    ):
        here.sparklog(name, "topics list", planted.command_config(name, properties), status)


def run_job(here: Scene, servers: str) -> None:
    """Spark's user logs in by SCRAM with a certificate. Options have references, and secrets as they are."""
    planted, folder = here.planted, here.looked_through / "job"
    folder.mkdir()

    def options(password: str, key: Mapping[str, str]) -> dict[str, str]:
        given = planted.client("alice", "SCRAM-SHA-512", password) | key
        return {"kafka.bootstrap.servers": servers, **{f"kafka.{name}": text for name, text in given.items()}}

    def literal(options: Mapping[str, str]) -> dict[str, str]:
        return {name: resolve(text) for name, text in options.items()}

    terms = {
        "folder": str(folder),
        "options": [
            options("alice", planted.of_a_key("key")),
            literal(options("alice", planted.inline_key())),
        ],
        "refused": [
            options("guessed", planted.of_a_key("key")),
            literal(options("guessed", planted.inline_key())),
            literal(options("alice", planted.of_a_key("guessed"))),
        ],
    }
    file = planted.folder / "terms.json"
    file.write_text(json.dumps(terms))
    here.run("job", (str(JOB), str(file)))
