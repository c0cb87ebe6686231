"""An operator's command line: `sparklog brokers …`, each command a process of its own, as people run it."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from chaos.access import Access

COMMAND_S: Final = 90.0
"""One that does not watch its operation ends by then, or has hung."""
ASK_EVERY_S: Final = 1.0
RUNNING: Final = "running"
DONE: Final = "done"
UNKNOWN: Final = "unknown"
"""States of operations; the last one is of those that nobody reports."""
STOPPING: Final = ("stop", "restart")
"""What a partition with no more replicas than its minimum refuses, unless that is accepted."""
OF_TOOLS: Final = "reassign"
"""A move that somebody else asked for."""


class Refused(Exception):  # noqa: N818 (it states a fact)
    """The command ended with another status than 0: what it said."""


class CommandHangs(Exception):  # noqa: N818 (it states a fact)
    """The command had not ended when its time was over."""


class Operator:
    """Runs commands. ``folder`` is where its file of properties goes, if it logs in."""

    def __init__(self, access: Access, folder: Path) -> None:
        self._words = ["--bootstrap-server", access.bootstrap, "--json"]
        if access.is_secured:
            properties = folder / "operator.properties"
            properties.write_text("".join(f"{name}={value}\n" for name, value in access.properties().items()))
            properties.chmod(0o600)
            self._words += ["--command-config", str(properties)]

    def begin(self, action: str, brokers: Sequence[int]) -> Mapping[str, Any]:
        """Begin an operation on these brokers, or on all if there are none; as a report shows it."""
        named = [str(broker) for broker in brokers] or ["--all"]
        accepted = ["--accept-unavailable"] if action in STOPPING else []
        return self._run([action, *named, "--no-wait", *accepted], "operations")[0]

    def brokers(self, timeout_s: float) -> Mapping[int, Mapping[str, Any]]:
        """What is reported of each, asked again and again while there is no report."""
        found = _until(lambda: self._run(["list"], "brokers"), timeout_s)
        return {one["broker_id"]: one for one in found}

    def insist(self, action: str, brokers: Sequence[int], timeout_s: float) -> Mapping[str, Any]:
        """Begin an operation, again and again while it is refused. Refused with the last words."""
        found: Mapping[str, Any] = _until(lambda: self.begin(action, brokers), timeout_s)
        return found

    def ended(self, operation: int, timeout_s: float) -> Mapping[str, Any]:
        """The operation once it has ended; what it was last seen to be when it is time."""
        deadline = time.monotonic() + timeout_s
        while True:
            known = {one["id"]: one for one in self._operations(timeout_s)}
            found = known.get(operation, {"id": operation, "state": UNKNOWN})
            if found["state"] not in (RUNNING, UNKNOWN) or time.monotonic() > deadline:
                return found
            time.sleep(ASK_EVERY_S)

    def still_running(self, timeout_s: float) -> Sequence[Mapping[str, Any]]:
        """Operators' operations that have not ended by then."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = [
                one
                for one in self._operations(timeout_s)
                if one["state"] == RUNNING and one["kind"] != OF_TOOLS
            ]
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(ASK_EVERY_S)

    def _operations(self, timeout_s: float) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = _until(
            lambda: self._run(["operations"], "operations"), timeout_s
        )
        return found

    def _run(self, arguments: Sequence[str], name: str) -> Sequence[Mapping[str, Any]]:
        """What the command prints under ``name``."""
        command = [sys.executable, "-m", "sparklog.cli.main", "brokers", *arguments, *self._words]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                timeout=COMMAND_S,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise CommandHangs(
                f"`brokers {' '.join(arguments)}` has not ended after {COMMAND_S:.0f} s"
            ) from None
        if done.returncode:
            raise Refused(f"`brokers {' '.join(arguments)}`: {done.stderr.strip()[-400:]}")
        found: Sequence[Mapping[str, Any]] = json.loads(done.stdout)[name]
        return found


def _until(do: Callable[[], Any], timeout_s: float) -> Any:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return do()
        except Refused:
            if time.monotonic() > deadline:
                raise
        time.sleep(ASK_EVERY_S)
