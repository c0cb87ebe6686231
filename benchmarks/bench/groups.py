"""What consumer groups cost: commits, a rebalance of many members, and the death of a coordinator's broker.

All members are librdkafka's, so that both clusters are asked the same by the same code. Each member has a
thread, because a member must poll to take part in a rebalance.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from bench.aims import at_least
from bench.clusters import Cluster, Pair
from bench.kafka_clients import create_topic, quiet, wait_in_sync
from bench.machine import wait_until
from bench.report import PartResult, Row, longest_gap
from bench.scale import Scale, say
from bench.turns import Tally, found, in_turns, spending

TOPIC: Final = "groups"
INTERNAL_TOPIC: Final = "__consumer_offsets"
TIMEOUT_S: Final = 120.0
SETTLE_S: Final = 3.0
COMMIT_PAUSE_S: Final = 0.02
COMMITS: Final = "commits"
REBALANCE: Final = "rebalance"
GAP: Final = "longest gap in commits after SIGKILL of the coordinator's broker"
# A member learns of a rebalance by its next heartbeat: with the default of 3 s that wait would be the figure.
QUICK_HEARTBEATS: Final[dict[str, object]] = {"heartbeat.interval.ms": 200}


@dataclass(slots=True)
class Member:
    """A consumer that takes part in its group from a thread, and perhaps commits without pause.

    ``commits`` holds when each commit was confirmed; ``assigned`` when partitions were assigned last, and how
    many it has now. ``pause_s`` is the time between two commits; None: it never commits.
    """

    bootstrap: str
    group: str
    pause_s: float | None = None
    settings: dict[str, object] = field(default_factory=dict)
    commits: list[float] = field(default_factory=list)
    assigned: frozenset[int] = frozenset()
    assigned_at: float = 0.0
    rounds: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"member-{self.group}")
        self._thread.start()

    def leave(self) -> None:
        """Leave the group; returns when the member has."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def ask_to_leave(self) -> None:
        self._stop.set()

    def _on_assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        self.assigned = frozenset(partition.partition for partition in partitions)
        self.assigned_at = time.monotonic()
        self.rounds += 1

    def _on_revoke(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        self.assigned = frozenset()

    def _run(self) -> None:
        consumer = Consumer(
            quiet(
                self.bootstrap,
                **{
                    "group.id": self.group,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    **self.settings,
                },
            )
        )
        consumer.subscribe([TOPIC], on_assign=self._on_assign, on_revoke=self._on_revoke)
        offset = 0
        try:
            while not self._stop.is_set():
                commits = self.pause_s is not None and self.assigned
                consumer.poll(self.pause_s or 0 if commits else 0.05)
                if commits and self.assigned:
                    offset += 1
                    self._commit(consumer, offset)
        finally:
            consumer.close()

    def _commit(self, consumer: Any, offset: int) -> None:
        positions = [TopicPartition(TOPIC, partition, offset) for partition in self.assigned]
        try:
            consumer.commit(offsets=positions, asynchronous=False)
        except KafkaException:
            return  # a rebalance, or a coordinator that moved: the next one counts
        self.commits.append(time.monotonic())


@contextmanager
def members(count: int, cluster: Cluster, group: str, partitions: int, **more: Any) -> Iterator[list[Member]]:
    """``count`` members of one group; begins when they have all ``partitions`` between them."""
    joined = [Member(cluster.bootstrap, group, **more) for _ in range(count)]
    with ExitStack() as stack:
        for member in joined:
            stack.callback(member.leave)
            member.start()
        stack.callback(lambda: [member.ask_to_leave() for member in joined])
        wait_until(lambda: _is_shared(joined, partitions), TIMEOUT_S, f"{count} members share {TOPIC}")
        yield joined


def _is_shared(joined: list[Member], partitions: int) -> bool:
    """Whether each partition has exactly one of the members, and each member some."""
    owned = [partition for member in joined for partition in member.assigned]
    return len(owned) == partitions and len(set(owned)) == partitions and all(m.assigned for m in joined)


def groups(pair: Pair, scale: Scale) -> PartResult:
    """Commits a second of many members, seconds of a rebalance, and the gap after a coordinator's death."""
    tally = Tally()
    notes = []
    for cluster in pair.all():
        create_topic(cluster.bootstrap, TOPIC, scale.group_members)
        wait_in_sync(cluster.bootstrap, TOPIC)
    for _, cluster in in_turns(pair, scale.rounds):
        _commits(cluster, scale, tally)
    for cluster in pair.all():
        rebalances = _rebalances(cluster, scale)
        gaps = [_coordinator_gap(cluster, scale, number) for number in range(scale.kills)]
        tally.note(REBALANCE, cluster, median(rebalances))
        tally.note(GAP, cluster, max(gaps))
        notes.append(
            f"{cluster.name}: rebalances in s {', '.join(f'{one:.2f}' for one in rebalances)}; "
            f"gaps in s {', '.join(f'{one:.2f}' for one in gaps)}."
        )
        say(f"groups {notes[-1]}")
    return PartResult(_rows(tally, scale), notes)


def _rows(tally: Tally, scale: Scale) -> list[Row]:
    count = scale.group_members
    eager = "one more joins; eager, range, heartbeats of 0.2 s; median"
    return found(
        tally.row(
            f"commits of {count} consumers",
            "1/s",
            work=COMMITS,
            note=f"one group, each waits for its commit; {at_least(1.1)}",
        ),
        tally.row(f"rebalance of {count} members", "s", work=REBALANCE, more_is_better=False, note=eager),
        tally.row(GAP, "s", more_is_better=False, note=f"worst of {scale.kills} kills"),
    )


def _commits(cluster: Cluster, scale: Scale, tally: Tally) -> None:
    """Confirmed commits of all members of one group, each of which has one partition."""
    count = scale.group_members
    with members(count, cluster, "committing", count, pause_s=0.0) as joined:
        time.sleep(SETTLE_S)
        with spending(cluster) as spent:
            before = sum(len(member.commits) for member in joined)
            time.sleep(scale.commit_s / scale.rounds)
            made = sum(len(member.commits) for member in joined) - before
    tally.note_rate(COMMITS, cluster, spent, made)
    say(f"groups {cluster.name}: {made / spent.seconds:,.0f} commits/s")


def _rebalances(cluster: Cluster, scale: Scale) -> list[float]:
    """Seconds from the start of one more member until all have their partitions in the new generation."""
    count = scale.group_members
    seconds = []
    with members(count - 1, cluster, "rebalancing", count, settings=QUICK_HEARTBEATS) as joined:
        for _ in range(scale.rounds):
            time.sleep(SETTLE_S)
            newcomer = Member(cluster.bootstrap, "rebalancing", settings=QUICK_HEARTBEATS)
            began = time.monotonic()
            newcomer.start()
            try:
                everybody = [*joined, newcomer]
                wait_until(
                    lambda everybody=everybody: _is_shared(everybody, count),
                    TIMEOUT_S,
                    "the newcomer has its partition",
                    step_s=0.01,
                )
                seconds.append(max(member.assigned_at for member in everybody) - began)
            finally:
                newcomer.leave()
            wait_until(lambda: _is_shared(joined, count), TIMEOUT_S, "the others share again")
    return seconds


def _coordinator_gap(cluster: Cluster, scale: Scale, number: int) -> float:
    """Longest time without a commit in the groups whose coordinator's broker is killed."""
    names = [f"single-{number}-{index}" for index in range(scale.group_count)]
    joined = [Member(cluster.bootstrap, name, pause_s=COMMIT_PAUSE_S) for name in names]
    with ExitStack() as stack:
        for member in joined:
            stack.callback(member.leave)
            member.start()
        stack.callback(lambda: [member.ask_to_leave() for member in joined])
        wait_until(lambda: all(len(m.commits) > 10 for m in joined), TIMEOUT_S, "all groups commit")
        time.sleep(SETTLE_S)
        coordinators = _coordinators(cluster, names)
        broker = max(set(coordinators.values()), key=list(coordinators.values()).count)
        killed = time.monotonic()
        cluster.kill(broker)
        struck = [member for member in joined if coordinators[member.group] == broker]
        wait_until(lambda: all(_goes_on(m, killed) for m in struck), TIMEOUT_S, "all groups commit again")
        until = time.monotonic()
        gap = max(longest_gap(list(member.commits), killed, until) for member in struck)
        cluster.revive(broker)
        wait_in_sync(cluster.bootstrap, INTERNAL_TOPIC, TIMEOUT_S)
        wait_in_sync(cluster.bootstrap, TOPIC, TIMEOUT_S)
    say(f"groups {cluster.name}: coordinator of {len(struck)} groups killed, gap {gap:.2f} s")
    return gap


def _goes_on(member: Member, killed: float) -> bool:
    """Whether it has committed again after a pause, or for some seconds on end without one."""
    after = [at for at in member.commits if at > killed]
    return len(after) >= 10 and time.monotonic() - killed > SETTLE_S and after[-1] > time.monotonic() - 1


def _coordinators(cluster: Cluster, names: list[str]) -> dict[str, int]:
    """The broker that coordinates each group."""
    admin = AdminClient(quiet(cluster.bootstrap))
    described = admin.describe_consumer_groups(names, request_timeout=30)
    return {name: future.result(60).coordinator.id for name, future in described.items()}
