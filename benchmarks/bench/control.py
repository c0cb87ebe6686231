"""The controller alone: a real ZooKeeper, real candidates, and brokers that hold the control side only."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from bench.clusters import Pair
from bench.machine import TOKEN, VARIABLE, end
from bench.report import PartResult, Row
from bench.scale import Scale, say
from sparklog.network.dialing.connection import Connection
from sparklog.wire.codec import Message
from sparklog.wire.messages.admin.create_topics import CreatableTopic, CreateTopicsRequest
from sparklog.wire.messages.admin.elect_leaders import ElectLeadersRequest
from sparklog.zookeeper.embedded import EmbeddedZooKeeper

HERE: Final = Path(__file__).parent
BROKERS: Final = 3
PARTITIONS_PER_TOPIC: Final = 100
TIMEOUT_MS: Final = 300_000


class Child:
    """A process that takes orders as lines of JSON, and answers each by one."""

    def __init__(self, script: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(HERE.parent), VARIABLE: TOKEN},
        )
        self.hello = self._answer()

    def ask(self, do: str, **order: object) -> dict[str, Any]:
        self.send(do, **order)
        return self._answer()

    def send(self, do: str, **order: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **order}) + "\n")
        self.process.stdin.flush()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args} ended with {self.process.wait()}")
        return json.loads(line)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        end(self.process)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one event took: by the clock, and of the controller's CPU."""

    seconds: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} s (CPU {self.cpu_s:.2f})"


class ControlPlane:
    """ZooKeeper, a controller in office, and stub brokers; a context manager."""

    def __init__(self, profile: str = "", brokers: int = BROKERS) -> None:
        self._profile = profile
        self._brokers = brokers
        self._closing = ExitStack()
        self.partitions = 0
        self._topics = 0

    def __enter__(self) -> Self:
        root = Path(self._closing.enter_context(tempfile.TemporaryDirectory(prefix="bench-control-")))
        self._zookeeper = self._closing.enter_context(EmbeddedZooKeeper(root / "zookeeper"))
        self._stubs = self._child("control_stubs.py", str(self._brokers))
        self._controller = self._candidate()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def _child(self, script: str, *arguments: str) -> Child:
        child = Child(script, self._zookeeper.connect_string, *arguments)
        self._closing.callback(child.end)
        return child

    def _candidate(self) -> Child:
        return self._child("control_candidate.py", *([self._profile] if self._profile else []))

    # ------------------------------------------------------------------------------------ events

    def create_topics(self, count: int, partitions: int, *, one_by_one: bool = False) -> Cost:
        """Until the controller has answered, and every replica was told its role."""
        names = [f"bench-{self._topics + number}" for number in range(count)]
        self._topics += count
        self.partitions += count * partitions
        made = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=3) for name in names]
        requests = [[topic] for topic in made] if one_by_one else [made]

        def event() -> None:
            self._stubs.send("roles", count=count * partitions * 3)
            with self._connection() as connection:
                for topics in requests:
                    request = CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS)
                    response = connection.call(request, timeout_ms=TIMEOUT_MS)
                    failed = [topic for topic in response.topics if topic.error_code]
                    if failed:
                        raise RuntimeError(f"topics could not be created: {failed[0]}")
            self._stubs._answer()

        return self._timed(event)

    def lose_broker(self, broker: int) -> Cost:
        return self._lost(broker, office=False)

    def lose_controller(self, broker: int = 0) -> Cost:
        """A standby takes over from a killed controller, at the moment its session ends; with ``broker`` that
        one is lost at the same moment. The CPU seconds are the new controller's."""
        standby = self._candidate()
        before = standby.ask("cpu")["cpu_s"]
        self._controller.kill()
        self._controller = standby
        seconds = self._stubs.ask("lose", broker=broker, office=True)["seconds"]
        return Cost(seconds, self._cpu_s() - before)

    def _lost(self, broker: int, *, office: bool) -> Cost:
        before = self._cpu_s()
        seconds = self._stubs.ask("lose", broker=broker, office=office)["seconds"]
        return Cost(seconds, self._cpu_s() - before)

    def return_broker(self, broker: int) -> tuple[Cost, Cost]:
        """Until it was told its roles, and until it is in every ISR again; then leaders are as they were."""
        told = self._timed(lambda: self._stubs.ask("return", broker=broker))
        port = self._controller.hello["port"]
        joined = self._timed(lambda: self._stubs.ask("join", broker=broker, port=port))
        self.call(ElectLeadersRequest(timeout_ms=TIMEOUT_MS))
        time.sleep(0.5)  # what is still under way to the stubs
        return told, joined

    def call(self, request: Message) -> Any:
        with self._connection() as connection:
            return connection.call(request, timeout_ms=TIMEOUT_MS)

    def write_profile(self) -> None:
        self._controller.ask("profile")

    def _connection(self) -> Connection:
        port = self._controller.hello["port"]
        return Connection.open("127.0.0.1", port, client_id="bench", timeout_ms=10_000)

    def _timed(self, event: Callable[[], object]) -> Cost:
        before, began = self._cpu_s(), time.monotonic()
        event()
        seconds = time.monotonic() - began
        return Cost(seconds, self._cpu_s() - before)

    def _cpu_s(self) -> float:
        return float(self._controller.ask("cpu")["cpu_s"])


def controller(pair: Pair, scale: Scale) -> PartResult:
    """The controller's own time and CPU; Kafka has no such brokers, so its figures are of ``partitions``."""
    rows = []
    with ControlPlane() as plane:
        for size in scale.stub_partitions:
            for what, cost in _events(plane, size):
                say(f"controller, {size:,} partitions, {what}: {cost}")
                each = f"controller's CPU {cost.cpu_s:.2f} s, {cost.cpu_s / size * 1e6:.0f} us a partition"
                rows.append(
                    Row(f"{size:,} partitions, {what}", "s", cost.seconds, more_is_better=False, note=each)
                )
    with ControlPlane() as plane:
        cost = plane.create_topics(scale.topics, 1)
        title = f"creation of {scale.topics:,} topics of one partition"
        rows.append(
            Row(title, "s", cost.seconds, more_is_better=False, note=f"controller's CPU {cost.cpu_s:.2f} s")
        )
    return PartResult(rows, [f"{BROKERS} brokers in one process that hold the control side only."])


def _events(plane: ControlPlane, size: int) -> Iterator[tuple[str, Cost]]:
    """Everything that is timed at one size; afterwards all is as it was."""
    count = (size - plane.partitions) // PARTITIONS_PER_TOPIC
    yield "created", plane.create_topics(count, PARTITIONS_PER_TOPIC)
    yield "a broker lost", plane.lose_broker(BROKERS)
    told, joined = plane.return_broker(BROKERS)
    yield "a broker back", told
    yield "in every ISR again", joined
    yield "controller lost", plane.lose_controller()
    yield "controller and a broker lost", plane.lose_controller(BROKERS)
    plane.return_broker(BROKERS)


def main() -> None:
    """python -m bench.control [PARTITIONS ...] [--profile FILE]: the controller's profile of each event."""
    arguments = sys.argv[1:]
    profile = arguments.pop(arguments.index("--profile") + 1) if "--profile" in arguments else ""
    with ControlPlane(profile) as plane:
        for size in [int(one) for one in arguments if one.isdigit()] or [1_000]:
            for what, cost in _events(plane, size):
                say(f"{size:6,} partitions, {what}: {cost}")
                if profile:
                    plane.write_profile()
                    Path(profile).rename(f"{profile}.{size}.{what.replace(' ', '-')}")


if __name__ == "__main__":
    main()
