"""docs/tutorial-exactly-once.md, from top to bottom: its files are saved and its commands run in their order.

The clone's environment stands for the page's: the two commands that install are not run. Ports are free ones.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chaos.machines.places import free_ports
from tests.waiting import until

pytestmark = [pytest.mark.integration, pytest.mark.proof, pytest.mark.timeout(600)]

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-exactly-once.md"
READY = "sparklog is ready: bootstrap.servers="
COMMAND_TIMEOUT_S = 240.0
ORDERS = 30_000


@dataclass(frozen=True)
class Block:
    kind: str
    text: str


def blocks() -> Iterator[Block]:
    for kind, text in re.findall(r"^```(\S[^\n]*)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        yield Block(kind, text)


@dataclass
class Reader:
    """A person with two terminals and a folder."""

    home: Path
    first_port: int = field(default_factory=lambda: free_ports(3))
    cluster: subprocess.Popen[bytes] | None = None

    def follow(self, block: Block) -> str:
        """Do what a block says; what its commands print."""
        words = block.kind.split()
        if words[0] == "python":
            (self.folder / words[1]).write_text(self._local(block.text))
        elif block.kind == "bash stays":
            self._start(block.text)
        elif block.kind == "bash" and "pip install" not in block.text:
            return self._run(block.text)
        return ""

    @property
    def folder(self) -> Path:
        return self.home / "tutorial"

    def stop(self) -> None:
        if self.cluster is not None:
            self.cluster.send_signal(signal.SIGINT)
            self.cluster.wait(90)

    def _run(self, text: str) -> str:
        """Run commands to their end, each with status 0."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._local(text)],
            cwd=self._here(),
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr[-4_000:]}"
        return done.stdout

    def _start(self, text: str) -> None:
        output = self.home / "cluster.txt"
        with output.open("wb") as stream:
            command = ["bash", "-c", f"exec {self._local(text).strip()} --port {self.first_port}"]
            self.cluster = subprocess.Popen(
                command, cwd=self._here(), env=self._environment(), stdout=stream, stderr=stream
            )
        until(lambda: READY in output.read_text() or self.cluster.poll() is not None, output.read_text, 120)
        assert self.cluster.poll() is None, output.read_text()

    def _here(self) -> Path:
        return self.folder if self.folder.exists() else self.home

    def _environment(self) -> dict[str, str]:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if "SPARK" not in name}
        return {**kept, "HOME": str(self.home), "PATH": programs}

    def _local(self, text: str) -> str:
        for n in range(3):
            text = text.replace(f"127.0.0.1:{9092 + n}", f"127.0.0.1:{self.first_port + n}")
        return text


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.stop()


def test_nothing_is_lost_or_there_twice_after_the_crash_of_the_page(reader: Reader) -> None:
    printed = "".join(reader.follow(block) for block in blocks())
    assert "once: killed when " in printed
    assert f"doubled: {ORDERS} orders, " in printed
    assert f"once: {ORDERS} orders, 0 of them more than once" in printed
    assert printed.splitlines()[-1].strip() == str(ORDERS)
