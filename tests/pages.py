"""Pages of docs/ as tests follow them: fenced blocks, and a person who runs them one after the other.

The word behind the fence says what a block is: ``bash`` runs to its end, ``bash stays`` goes on running,
``python NAME`` is saved as a file, ``text`` is what a command prints.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from chaos.machines.places import free_ports
from tests.waiting import until

DOCS: Final = Path(__file__).parents[1] / "docs"
READY: Final = "sparklog is ready: bootstrap.servers="
COMMAND_TIMEOUT_S: Final = 240.0


@dataclass(frozen=True)
class Block:
    """A fenced block: its section's title, the words behind the fence, and its lines."""

    section: str
    kind: str
    text: str


def blocks_of(page: Path) -> Iterator[Block]:
    for section in re.split(r"^## ", page.read_text(), flags=re.MULTILINE):
        for kind, text in re.findall(r"^```(\S[^\n]*)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
            yield Block(section.partition("\n")[0], kind, text)


@dataclass
class Person:
    """A person with two terminals: in the first runs the cluster of the page, if it starts one.

    The clone's environment stands for the page's: commands that install are not run. Ports are free ones,
    and ``replaced`` are the page's names of other servers, with those of the test.
    """

    home: Path
    folder_name: str
    replaced: Mapping[str, str] = field(default_factory=dict)
    first_port: int = field(default_factory=lambda: free_ports(9))
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
        return self.home / self.folder_name

    def interrupt(self) -> None:
        """Ctrl-C in the first terminal; returns when the cluster has ended."""
        if self.cluster is not None:
            self.cluster.send_signal(signal.SIGINT)
            self.cluster.wait(90)
            self.cluster = None

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
            port = "" if "--port" in text else f" --port {self.first_port}"
            command = ["bash", "-c", f"exec {self._local(text).strip()}{port}"]
            cluster = self.cluster = subprocess.Popen(
                command, cwd=self._here(), env=self._environment(), stdout=stream, stderr=stream
            )
        until(lambda: READY in output.read_text() or cluster.poll() is not None, output.read_text, 120)
        assert cluster.poll() is None, output.read_text()

    def _here(self) -> Path:
        return self.folder if self.folder.exists() else self.home

    def _environment(self) -> dict[str, str]:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        kept = {name: value for name, value in os.environ.items() if "SPARK" not in name}
        return {**kept, "HOME": str(self.home), "PATH": programs}

    def _local(self, text: str) -> str:
        for n in range(9):
            for before in ("127.0.0.1:", "--port "):
                text = text.replace(f"{before}{9092 + n}", f"{before}{self.first_port + n}")
        for name, ours in self.replaced.items():
            text = text.replace(name, ours)
        return text
