"""The broker that dies, as a test has it: launched, held, armed, and asked at which point it died."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparklog.model.settings.config import BrokerConfig
from tests.waiting import PATIENCE_S, until

_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Point:
    """Where a process killed itself."""

    moment: str
    call: str
    what: str


def _free_port() -> int:
    """The victim keeps it: a client that knows no other broker finds it again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Victim:
    """Broker 0. Its least id makes it the one that looks through the whole store."""

    broker_id = 0

    def __init__(self, folder: Path, zookeeper: str, settings: Mapping[str, str]) -> None:
        folder.mkdir()
        BrokerConfig.parse(settings)
        port = _free_port()
        self.address = f"127.0.0.1:{port}"
        self._options = {
            "id": self.broker_id,
            "log": str(folder / "log.txt"),
            "log_dir": str(folder / "data"),
            "zookeeper": zookeeper,
            "settings": dict(settings),
            "socket": str(folder / "socket"),
            "port": port,
        }
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / "socket"))
        self._listener.listen()
        self._listener.settimeout(PATIENCE_S)
        with (folder / "stderr.txt").open("ab") as errors:
            self._nursery = subprocess.Popen(
                [sys.executable, "-P", str(Path(__file__).with_name("dying_broker.py"))],
                stdin=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": str(_ROOT)},
            )
        self._life = socket.socket()
        self._lines: list[dict[str, Any]] = []
        self._is_over = threading.Event()
        self._is_over.set()
        self.epoch = 0

    def launch(self, at: int = 0) -> None:
        """Until it serves, or has died at its ``at``-th point."""
        assert self.is_dead
        assert self._nursery.stdin is not None
        self._nursery.stdin.write(json.dumps({**self._options, "at": at}).encode() + b"\n")
        self._nursery.stdin.flush()
        self._life.close()
        self._life, _ = self._listener.accept()
        self._lines, self._is_over = [], threading.Event()
        threading.Thread(target=self._listen, args=(self._life, self._lines, self._is_over)).start()
        self._await("epoch")
        assert not self.is_dead or self.point is not None, f"it does not start; see {self._options['log']}"

    @staticmethod
    def _listen(life: socket.socket, lines: list[dict[str, Any]], is_over: threading.Event) -> None:
        with contextlib.suppress(ConnectionResetError), life.makefile("rb") as said:
            lines.extend(map(json.loads, said))  # reset: it died with a command that it had not read
        is_over.set()

    @property
    def is_dead(self) -> bool:
        return self._is_over.is_set()

    @property
    def point(self) -> Point | None:
        """Where it killed itself; None if it lives, or was killed."""
        said = next((one for one in self._lines if "point" in one), None)
        return None if said is None else Point(said["moment"], said["call"], said["what"])

    def hold(self) -> None:
        """From now on no call of the tier begins."""
        self._command("hold")

    def arm(self, at: int) -> None:
        """Calls go on, and the ``at``-th point from now kills; 0: none."""
        self._command(f"arm {at}")

    def kill(self) -> None:
        """At no point."""
        self._life.shutdown(socket.SHUT_WR)
        until(lambda: self.is_dead, "the death of the broker")

    def close(self) -> None:
        if not self.is_dead:
            self.kill()
        assert self._nursery.stdin is not None
        self._nursery.stdin.close()
        self._nursery.wait(PATIENCE_S)
        for one in (self._life, self._listener):
            one.close()

    def _command(self, text: str) -> None:
        self._lines[:] = [one for one in self._lines if one.get("done") != text]
        try:
            self._life.sendall(text.encode() + b"\n")
        except OSError:
            until(lambda: self.is_dead, "the death of the broker")  # it was on its way
            return
        self._await("done", text)

    def _await(self, name: str, value: object = None) -> None:
        def has_said() -> bool:
            said = [one[name] for one in list(self._lines) if name in one]
            if name == "epoch" and said:
                self.epoch = said[0]
            return self.is_dead or (bool(said) if value is None else value in said)

        until(has_said, f"{name} {value} of the broker")
