"""docs/on-your-cluster.md, line by line: every command of the page is copied from it and run, in its order.

All its hosts are this machine: their names and ports are replaced, and paths outside of the test's folder.
`pip` may not download here, so it installs the wheel alone, and what the wheel needs is found in the clone's
environment.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

from chaos.machines.places import free_ports
from sparklog_runtime.start.reachable import is_listening
from tests.pages import DOCS, READY, blocks_of

pytestmark = [pytest.mark.integration, pytest.mark.proof, pytest.mark.timeout(400)]

CLONE = Path(__file__).parents[2]
PAGE = DOCS / "on-your-cluster.md"
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "sparklog", "datasource", "broker_runtime", "conf")
SPARK_PROGRAMS = ("spark-class", "spark-submit", "find-spark-home", "find_spark_home.py", "load-spark-env.sh")
START_TIMEOUT_S = 120.0


def _wait(is_so, what: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)  # the fact lives in another process


class Site:
    """The hosts of the page: one machine, one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clone = folder / "clone"
        self.venv = folder / "opt" / "sparklog"
        self.root = folder / "var" / "lib" / "sparklog"
        # A name, so that sparklog takes it for a cluster, where it leads to this machine alone.
        name = socket.gethostname()
        self.host = name if _leads_here(name) else "127.0.0.1"
        self.first_port = free_ports(6)
        self.zookeeper_port, self.master_port = self.first_port + 3, self.first_port + 4
        self.processes: list[subprocess.Popen[bytes]] = []
        self.outputs: list[Path] = []

    def local(self, text: str) -> str:
        """A text of the page with this machine's names, ports and paths."""
        text = text.replace("9092", str(self.first_port))
        text = text.replace("2181", str(self.zookeeper_port)).replace("7077", str(self.master_port))
        text = re.sub(r"spark-[234](?=:)", "127.0.0.1", text)
        text = re.sub(r"spark-1\b", self.host, text)
        return re.sub(r"(?<![\w.])/(opt|etc|var|data)/", rf"{self.folder}/\1/", text)

    def environment(self) -> dict[str, str]:
        """The user's: before there is a virtual environment of the page, the clone's; then that."""
        is_installed = (self.venv / "bin" / "sparklog").exists()
        programs = self.venv / "bin" if is_installed else Path(sys.prefix) / "bin"
        return {
            **{name: value for name, value in os.environ.items() if "SPARK" not in name},
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin:{Path(shutil.which('java') or '').parent}",
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip's own twist: this is how it is switched off
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "SPARK_MASTER_WEBUI_PORT": "0",
            "SPARK_WORKER_WEBUI_PORT": "0",
            "SPARK_WORKER_DIR": str(self.folder / "work"),
        }

    def run(self, text: str) -> str:
        """Run commands to their end; returns what they wrote to standard output."""
        done = subprocess.run(
            ["bash", "-euc", self.local(text)],
            cwd=self.clone,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr[-4_000:]}"
        return done.stdout

    def leave_running(self, text: str) -> Path:
        """Run a command that stays; returns the file with all that it writes."""
        output = self.folder / f"output-{len(self.outputs)}.txt"
        self.outputs.append(output)
        with output.open("wb") as stream:
            process = subprocess.Popen(
                ["bash", "-euc", f"exec {self.local(text)}"],
                cwd=self.clone,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
            )
        self.processes.append(process)
        return output

    def await_words(self, output: Path, words: str) -> str:
        """Wait until a command that stays has written them; returns the line."""
        process = self.processes[self.outputs.index(output)]

        def is_written() -> bool:
            assert process.poll() is None, output.read_text()
            return words in output.read_text()

        _wait(is_written, lambda: f"no {words!r} in {output.read_text()}")
        return next(line for line in output.read_text().splitlines() if words in line)

    def stop_last(self, number: int) -> int:
        """Signal the command that was left running last; returns its exit status."""
        self.processes[-1].send_signal(number)
        return self.processes[-1].wait(90)

    def close(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _leads_here(name: str) -> bool:
    try:
        return socket.gethostbyname(name).startswith("127.")
    except OSError:
        return False


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    made.clone.mkdir()
    for name in SOURCES:
        source, copy = CLONE / name, made.clone / name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    (tmp_path / "data").mkdir()
    yield made
    made.close()


class Pages:
    """Takes the blocks of the page one after the other."""

    def __init__(self) -> None:
        self._left = list(blocks_of(PAGE))

    def next(self, kind: str) -> str:
        block = self._left.pop(0)
        assert block.kind == kind, block
        return block.text

    def is_done(self) -> bool:
        return not self._left


def _install(site: Site, page: Pages) -> None:
    site.run(page.next("bash"))
    site.run(page.next("bash"))
    packages = site.venv / sysconfig.get_path("purelib", vars={"base": ".", "platbase": "."})
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    for name in SPARK_PROGRAMS:  # which pip puts there together with PySpark
        shutil.copy(Path(sys.prefix) / "bin" / name, site.venv / "bin" / name)
    site.run(page.next("bash"))


def _start_spark(site: Site, page: Pages) -> None:
    zookeeper = page.next("bash stays")
    site.leave_running(zookeeper)
    _wait(lambda: is_listening("127.0.0.1", site.zookeeper_port), lambda: "no ZooKeeper")
    master = site.leave_running(page.next("bash stays"))
    site.await_words(master, "I have been elected leader")
    worker = page.next("bash stays on three hosts")
    for output in [site.leave_running(worker) for _ in range(3)]:
        site.await_words(output, "Successfully registered with master")


def _write_settings(site: Site, page: Pages) -> None:
    site.run(page.next("bash"))
    path = site.folder / "etc" / "sparklog" / "server.properties"
    for lines in (page.next("properties"), page.next("properties")):
        for line in site.local(lines).splitlines():
            name = line.partition("=")[0]
            changed, count = re.subn(rf"^#?{re.escape(name)}=.*$", line, path.read_text(), flags=re.MULTILINE)
            assert count == 1, f"{name} is not in {path}"
            path.write_text(changed)
    (path.parent / "hosts").write_text(page.next("text"))
    with path.open("a") as settings:
        settings.write(f"controller.port={site.first_port + 5}\n")
    with (path.parent / "spark-defaults.conf").open("a") as spark:
        spark.write("spark.driver.host 127.0.0.1\n")  # the only address that this machine has for sure


def _cluster(site: Site) -> dict:
    return json.loads((site.root / "cluster.json").read_text())


def _racks(site: Site) -> set[str]:
    status = json.loads(site.run("sparklog status --json --root /var/lib/sparklog"))
    return {broker["rack"] for broker in status["brokers"]}


def _processes_left(site: Site) -> list[str]:
    """Command lines of brokers and drivers that still run for this site."""
    lines = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if str(site.folder) in line and ("submit.py" in line or "pyspark.daemon" in line):
            lines.append(line)
    return lines


def _assert_stopped_tidily(site: Site, broker_logs: list[Path]) -> None:
    assert not (site.root / "cluster.json").exists()
    for log_dir in broker_logs:
        assert (log_dir / ".kafka_cleanshutdown").exists()
    _wait(lambda: not _processes_left(site), lambda: f"left: {_processes_left(site)}")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for what is left in /proc")
def test_every_command_of_the_page_does_what_the_page_says(tmp_path, site):
    page = Pages()
    _install(site, page)
    _start_spark(site, page)
    _write_settings(site, page)

    submitted = site.leave_running(page.next("bash stays"))
    ready = site.await_words(submitted, READY)
    assert ready.count(",") == page.next("text").count(",") == 2
    cluster = _cluster(site)
    assert f"{READY}{cluster['bootstrap_servers']}" == ready
    first = site.first_port
    assert [broker["port"] for broker in cluster["brokers"]] == [first, first + 1, first + 2]
    assert cluster["controllers"][0]["port"] == site.first_port + 5
    assert all(line.startswith("sparklog: ") or line == ready for line in submitted.read_text().splitlines())
    log_dirs = [Path(broker["log_dirs"][0]) for broker in cluster["brokers"]]

    assert _racks(site) == {"b"}  # no line names this machine, but the star does
    site.run(page.next("bash"))
    (site.clone / "first.py").write_text(page.next("python"))
    dataframe = page.next("bash")
    assert "records: 1000" in site.run(dataframe)
    assert site.stop_last(signal.SIGTERM) == 0
    _assert_stopped_tidily(site, log_dirs)

    by_hand = site.leave_running(page.next("bash stays"))
    site.await_words(by_hand, READY)
    assert "records: 2000" in site.run(dataframe)
    os.kill(_cluster(site)["controllers"][0]["pid"], signal.SIGTERM)
    assert site.processes[-1].wait(90) == 0
    _assert_stopped_tidily(site, log_dirs)
    assert page.is_done()
