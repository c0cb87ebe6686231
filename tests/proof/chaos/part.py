"""One part of a run: a cluster of its own, clients, administrators, faults by the schedule, the verdict."""

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from chaos.clients.admin import EVERY_S, MISTAKES, Administrators
from chaos.clients.finale import FinalReadFailed, dump_replicas, read_everything
from chaos.clients.member_parts import GROUP, POLL_INTERVAL_MS
from chaos.clients.transaction_parts import PIPELINE
from chaos.clients.workload import CLIENTS, ClientPlan, Workload
from chaos.denials import Denial, breaches, refusals
from chaos.groups import wait_for_rest
from chaos.machines.bare import BareBench
from chaos.machines.bench import Bench, BenchOptions, Replicas
from chaos.machines.places import Places
from chaos.machines.store import URL
from chaos.nemesis import Nemesis
from chaos.report import PAIRED, Ack, Part, Window, measure, not_judged, violated_rules
from chaos.schedule import PAIRS, Turn, in_order, turns
from chaos.teams import BLUE, rights_of
from chaos.typed import columns
from chaos.typed.changes import columns_now
from histories import History, HistoryError, Writer, read_history
from sparklog.model.errors import SparklogError

WARM_UP_S = 5.0
WHOLE_TIMEOUT_S = 300.0
AFTER_HEAL_S = 12.0
SETTLE_S = 6.0
"""From then on after healing every send must be answered, until producers stop."""
CLIENTS_ANSWERED_S = 90.0
"""For so long everybody may take to be answered once more, who may have begun again just before."""
GROUP_AT_REST_S = POLL_INTERVAL_MS / 1_000 + 15.0
"""Until the group is stable: its longest rebalance, and a session."""
CONSUMERS_READ_ON_S = 5.0
CLIENTS_END_S = 90.0
WINDOW_ACKS_MIN = 1
CHECKER = "histories"

TOPICS = {"plain": 3, "rolled": 2, "moved": 2, "keyed": 2}
"""``rolled`` has small segments and loses records to DeleteRecords; ``moved``'s two replicas move; ``keyed``
is compacted.
"""

TRANSACTED = {"ledger": 2, "copied": 2}
"""Topics with transactions. Pipelines copy ``ledger`` into ``copied``."""

TYPED = {columns.TOPIC: 2}
"""The topic with columns, which change."""

EVERY_TOPIC = {**TOPICS, **TRANSACTED, **TYPED}
"""But those that administrators make."""

RIGHTS = rights_of([*TOPICS, *TYPED], list(TRANSACTED), GROUP, PIPELINE)
"""What the teams of a secured cluster may do."""

MEASURED = ("plain", "rolled")
"""Topics that a single fault leaves with enough replicas for acks=all."""

TOPIC_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "rolled": {"segment.bytes": "65536"},
    columns.TOPIC: columns.TOPIC_SETTINGS,
    "keyed": {
        "cleanup.policy": "compact",
        "segment.bytes": "65536",
        "min.cleanable.dirty.ratio": "0.2",
        "delete.retention.ms": "5000",
    },
}
TIERED: Mapping[str, str] = {
    "remote.log.storage.url": URL,
    "remote.log.manager.task.interval.ms": "500",
    "log.retention.check.interval.ms": "1000",
}
TIERED_TOPIC_SETTINGS: Mapping[str, Mapping[str, str]] = {
    name: {"remote.storage.enable": "true", "segment.bytes": "32768", "local.retention.bytes": "65536"}
    for name in ("rolled", "moved", "ledger")
}
"""Topics with a remote store: consumers that begin early, and the final reads, cross the border."""

WHOLE_HISTORY = frozenset({"moved", "ledger"})
"""Those whose logs begin at offset 0 for ever: administrators delete no records there."""

BUSY_TOPIC_SETTINGS: Mapping[str, str] = {"segment.bytes": "12288"}
REPLICAS = {"moved": 2}
COMPACTED = frozenset({"keyed"})

BUSY_FILES: Mapping[str, str] = {
    "log.segment.bytes": "12288",
    "log.index.interval.bytes": "1024",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.interval.ms": "2000",
    "log.flush.scheduler.interval.ms": "500",
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
}
"""Brokers whose files come and go all the time: every kind of call is met within seconds."""

BUSY_ADMINISTRATORS_S = (0.5, 2.0)


@dataclass
class PartOptions:
    """What one part is to be."""

    folder: Path
    seed: int
    seconds: float
    nemeses: Sequence[Nemesis]
    spark: str = "workers"
    candidates: int = 2
    brokers: int = 3
    rate: float = 120.0
    pairs: float = PAIRS
    has_busy_files: bool = False
    """Small segments, and everything that brokers do now and then done often."""
    with_administrators: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)
    places: Places | None = None
    clients: Sequence[ClientPlan] = CLIENTS
    windows_max: int = 1_000_000
    first: Sequence[str] = ()
    """Kinds that come first, in this order, each until it has struck."""
    is_over_then: bool = False
    """No other fault comes after those."""
    warm_up_s: float = WARM_UP_S
    has_store: bool = False
    """The history of some topics is in a remote store, and on brokers' disks as little as may be."""
    is_secured: bool = False
    """Clients log in, and rules say what each may do; ``clients`` has those who try what is not theirs."""
    mutant: str | None = None
    """A bug that all brokers have (``bugs.py``)."""


def run_part(options: PartOptions, say: Callable[[str], None], stop: threading.Event) -> Part:
    """Live through it; the part says what was found."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    part = Part(options.seed, 0.0, spark=options.spark, is_secured=options.is_secured)
    histories = options.folder / "histories"
    histories.mkdir(parents=True, exist_ok=True)
    settings = {
        **(BUSY_FILES if options.has_busy_files else {}),
        **(TIERED if options.has_store else {}),
        **options.settings,
    }
    bench_options = BenchOptions(
        options.folder,
        spark=options.spark,
        candidates=options.candidates,
        brokers=options.brokers,
        settings=settings,
        has_store=options.has_store,
        mutant=options.mutant,
        rights=RIGHTS if options.is_secured else None,
    )
    make = BareBench if options.spark == "none" else Bench
    with make(bench_options, options.places, say) as bench, Writer(histories / "harness.jsonl") as writer:
        say(f"the cluster is up: {bench.access.bootstrap}")
        with Writer(histories / "administrators.jsonl") as admin_writer:
            _Life(options, part, bench, writer, admin_writer, say, stop).live()
        denials = _denials(options, bench, part)
        if part.verdict != "VIOLATED":
            _dump(part, bench, writer, has_store=options.has_store)
    _judge(part, histories, say, denials)
    (options.folder / "part.json").write_text(json.dumps(_as_json(part), indent=1))
    return part


def _denials(options: PartOptions, bench: Bench, part: Part) -> list[Denial]:
    """Who was to be denied when; what the changes of the cluster's security have shown goes to the part."""
    if not options.is_secured:
        return []
    part.findings += bench.security.findings
    trespassers = [plan for plan in options.clients if plan.role == "trespasser"]
    always = [
        Denial(plan.name, frozenset(TOPICS if plan.team == BLUE else TRANSACTED), 0) for plan in trespassers
    ]
    return [*always, *bench.security.denials]


def _dump(part: Part, bench: Bench, writer: Writer, *, has_store: bool) -> None:
    """Stop the brokers in good order, and read what they leave."""
    replicas = {place: found.assigned for place, found in bench.replicas().items()}
    if not bench.stop_application():
        part.findings.append("brokers or controllers did not stop within their time")
        return
    log_dirs = {broker: bench.log_dir(broker) for broker in bench.broker_ids()}
    part.dumps = sum(len(some) for some in replicas.values())
    part.findings += dump_replicas(replicas, log_dirs, writer)
    whole = {place: found for place, found in replicas.items() if place[0] in WHOLE_HISTORY}
    part.only_in_store = sum(
        min(_first_on_disk(log_dirs[broker], place) for broker in brokers) for place, brokers in whole.items()
    )
    if has_store and not part.only_in_store:
        part.invalid.append("no offset was in the remote store alone: no read went through it")


def _first_on_disk(log_dir: Path, place: tuple[str, int]) -> int:
    topic, partition = place
    return min((int(path.stem) for path in (log_dir / f"{topic}-{partition}").glob("[0-9]*.log")), default=0)


class _Life:
    """From the first topic to the final reads."""

    def __init__(
        self,
        options: PartOptions,
        part: Part,
        bench: Bench,
        writer: Writer,
        admin_writer: Writer,
        say: Callable[[str], None],
        stop: threading.Event,
    ) -> None:
        self._options, self._part, self._bench, self._writer = options, part, bench, writer
        self._say, self._stop = say, stop
        rng = Random(f"part/{options.seed}")
        self._watch_ended = threading.Event()
        self._struck: set[str] = set()
        self._workload = Workload(
            bench.access_of,
            TOPICS,
            options.folder,
            Random(rng.random()),
            options.rate,
            options.clients,
            COMPACTED,
            TRANSACTED,
            TYPED,
        )
        self._administrators = Administrators(
            bench.access,
            admin_writer,
            Random(rng.random()),
            brokers=bench.broker_ids(),
            topics=TOPICS,
            moving="moved",
            shrinking="rolled",
            every_s=BUSY_ADMINISTRATORS_S if options.has_busy_files else EVERY_S,
            alters=True,
        )

    def live(self) -> None:
        self._create_topics()
        watcher = threading.Thread(target=self._watch_leaders, name="watch-leaders", daemon=True)
        watcher.start()
        began = time.monotonic()
        try:
            self._workload.start()
            if self._options.with_administrators:
                self._administrators.start()
            self._stop.wait(self._options.warm_up_s)
            self._strike(began + self._options.seconds)
            self._part.crash_points = [point for one in self._options.nemeses for point in one.points]
            for one in self._options.nemeses:
                self._part.operations.update(one.operations)
            self._mend()
        finally:
            self._administrators.stop()
            self._watch_ended.set()
            watcher.join()
        self._part.seconds = time.monotonic() - began
        self._part.client_crashes = self._workload.crashes
        self._part.client_restarts = dict(self._workload.restarts)
        self._part.admin_done, self._part.admin_refused = (
            self._administrators.done,
            self._administrators.refused,
        )
        self._part.findings += [f"never asked for: {what}" for what in sorted(self._administrators.mistakes)]

    def _create_topics(self) -> None:
        admin = AdminClient({**self._bench.access.confluent(), "log_level": 0})
        new = [
            NewTopic(name, count, REPLICAS.get(name, 3), config=self._settings_of(name))
            for name, count in EVERY_TOPIC.items()
        ]
        for made in admin.create_topics(new, request_timeout=30).values():
            made.result(60)
        for name in COMPACTED:
            self._writer.event("harness", "topic", topic=name, what="created", cleanup="compact")
        self._bench.topics = EVERY_TOPIC
        missing = self._bench.wait_whole(WHOLE_TIMEOUT_S)
        if missing is not None:
            raise RuntimeError(f"new topics are not whole: {missing}")

    def _settings_of(self, topic: str) -> dict[str, str]:
        return {
            **TOPIC_SETTINGS.get(topic, {}),
            **(TIERED_TOPIC_SETTINGS.get(topic, {}) if self._options.has_store else {}),
            **(BUSY_TOPIC_SETTINGS if self._options.has_busy_files else {}),
        }

    def _watch_leaders(self) -> None:
        """Tell every change of a leader that is seen; whoever led in between was not seen to."""
        known: dict[tuple[str, int], Replicas] = {}
        while not self._watch_ended.wait(0.5):
            try:
                found = self._bench.replicas()
            except (KazooException, KazooTimeoutError) as error:  # ZooKeeper is under faults itself
                logging.getLogger(__name__).info("leaders cannot be read: %r", error)
                continue
            except Exception as error:  # noqa: BLE001 (whatever it is, nobody watches any more)
                self._part.findings.append(f"who leads cannot be read: {error!r}")
                return
            for (topic, partition), now in found.items():
                before = known.get((topic, partition))
                if before is None or before.leader_epoch != now.leader_epoch:
                    self._writer.event(
                        "harness",
                        "leader",
                        topic=topic,
                        partition=partition,
                        leader=str(now.leader),
                        leader_epoch=now.leader_epoch,
                    )
            known = found

    # Faults

    def _usable(self) -> dict[str, Nemesis]:
        usable = {}
        for nemesis in self._options.nemeses:
            lacking = nemesis.needs - self._bench.features
            why = nemesis.probe()
            if why is None and lacking:
                why = f"this cluster has no {', '.join(sorted(lacking))}"
            if why is None:
                usable[nemesis.kind] = nemesis
            else:
                self._part.not_run[nemesis.kind] = why
                self._writer.event("harness", "not_run", kind=nemesis.kind, why=why)
                self._say(f"not run: {nemesis.kind}: {why}")
        return usable

    def _turns(self, usable: Mapping[str, Nemesis]) -> Iterator[Turn]:
        options, number = self._options, 0
        first = [kind for kind in options.first if kind in usable]
        for turn in in_order(options.seed, first, self._struck):
            number = turn.number
            yield turn
        if not options.is_over_then:
            weights = {kind: nemesis.weight for kind, nemesis in usable.items()}
            alone = {kind for kind, nemesis in usable.items() if nemesis.is_alone}
            yield from turns(options.seed, weights, options.pairs, number, alone)

    def _strike(self, deadline: float) -> None:
        usable = self._usable()
        for turn in self._turns(usable):
            over = turn.number > self._options.windows_max or time.monotonic() > deadline
            if over or self._stop.wait(turn.calm_s):
                return
            self._window(turn, [usable[kind] for kind in turn.kinds])
            if self._part.findings:
                return

    def _window(self, turn: Turn, nemeses: Sequence[Nemesis]) -> None:
        rng = Random(turn.seed)
        name = f"{turn.number}"
        self._writer.event("harness", "fault", kind=turn.name, target="see the story", phase="begin", id=name)
        window = Window(turn.number, "", "", time.monotonic_ns(), 0, 0)
        told: list[str] = []
        struck: list[str] = []
        until: list[tuple[float, int]] = []
        with contextlib.ExitStack() as ends:
            for number, nemesis in enumerate(nemeses):
                if number:  # the second of two strikes while the first lasts
                    self._stop.wait(min(max(0.0, until[0][0] - time.monotonic()), rng.uniform(0.1, 2.0)))
                seconds = nemesis.seconds(self._bench, rng)
                self._say(f"{turn.number}. {nemesis.kind}{f', for {seconds:.1f} s' if seconds else ''}")
                ends.callback(nemesis.end)
                outcome, has_struck = strike(nemesis, self._bench, rng, self._part)
                told.append(outcome)
                if has_struck:
                    struck.append(nemesis.kind)
                self._say(f"   {outcome}")
                until.append((time.monotonic() + seconds, number))
            for when, number in sorted(until):
                self._stop.wait(max(0.0, when - time.monotonic()))
                nemeses[number].end()
        window.name = PAIRED.join(struck)
        window.what = "; ".join(told)
        window.ended_ns = time.monotonic_ns()
        for nemesis in nemeses:
            self._part.findings += nemesis.settle()
        missing = self._bench.wait_whole(WHOLE_TIMEOUT_S)
        window.whole_ns = time.monotonic_ns()
        self._writer.event("harness", "fault", kind=turn.name, target="see the story", phase="end", id=name)
        if struck:
            self._struck.update(struck)
            self._part.windows.append(window)
        if missing is not None:
            self._part.findings.append(
                f"window {turn.number} ({window.what}): not whole {WHOLE_TIMEOUT_S:.0f} s after it: {missing}"
            )

    # The end

    def _mend(self) -> None:
        self._administrators.stop()
        self._bench.topics = topics = {**EVERY_TOPIC, **self._administrators.scratch}
        missing = self._bench.wait_whole(WHOLE_TIMEOUT_S)
        if missing is not None:
            self._part.findings.append(f"not whole at the end: {missing}")
        self._workload.crash_nobody_more()
        self._writer.event("harness", "heal")
        time.sleep(AFTER_HEAL_S)
        idle = self._workload.wait_for_all(CLIENTS_ANSWERED_S)
        if idle:
            self._part.findings.append(f"clients had no answer any more after healing: {', '.join(idle)}")
        self._look_at_the_group()
        killed = self._workload.stop(CLIENTS_END_S, CONSUMERS_READ_ON_S)
        if killed:
            self._part.findings.append(f"clients did not come to their end: {', '.join(killed)}")
        try:
            access = self._bench.access
            typed = columns_now(access)
            self._part.records = read_everything(access, topics, self._writer, typed)
        except (FinalReadFailed, KafkaException, SparklogError) as error:
            self._part.findings.append(f"the final read failed: {error}")

    def _look_at_the_group(self) -> None:
        members = sum(plan.is_member for plan in self._options.clients)
        if members:
            wrong = wait_for_rest(self._bench.access, GROUP, members, TOPICS, GROUP_AT_REST_S)
            if wrong is not None:
                self._part.findings.append(f"the group has not come to rest after healing: {wrong}")


def strike(nemesis: Nemesis, bench: Bench, rng: Random, part: Part) -> tuple[str, bool]:
    """Begin a fault; what is to be told of it, and whether it struck.

    Whom it aimed at may be gone, under faults: that is a miss. A mistake of the harness is a finding.
    """
    try:
        return f"{nemesis.kind}: {nemesis.begin(bench, rng)}", True
    except MISTAKES as error:
        told = f"{nemesis.kind} cannot strike: {error!r}"
        part.findings.append(told)
    except Exception as error:  # noqa: BLE001 (a dead process, a broken connection, a file that is gone, ...)
        told = f"{nemesis.kind} did not strike: {error!r}"
        part.missed[nemesis.kind] = part.missed.get(nemesis.kind, 0) + 1
    return told, False


# -------------------------------------------------------------------------------------------------- verdict


def _judge(part: Part, histories: Path, say: Callable[[str], None], denials: Sequence[Denial] = ()) -> None:
    """Counts from the history, and what the independent checker says of it."""
    files = sorted(histories.glob("*.jsonl"))
    try:
        history = read_history(*files)
    except HistoryError as error:
        part.findings.append(f"the history cannot be read: {error}")
        return
    for send in history.sends:
        part.sends[send.outcome] = part.sends.get(send.outcome, 0) + 1
    _judge_denials(part, history, denials)
    part.polled = sum(len(read.records) for read in history.reads if hasattr(read, "records"))
    acks = [
        Ack(send.topic, send.partition, send.done_ns)
        for send in history.sends
        if send.is_ok and send.acks < 0
    ]
    measure(part.windows, acks, MEASURED)
    overlapped = sum(window.acks >= WINDOW_ACKS_MIN for window in part.windows)
    if not part.windows or overlapped < len(part.windows) / 2:
        part.invalid.append(f"only {overlapped} of {len(part.windows)} fault windows saw acknowledgements")
    say("the checker reads the history")
    as_json, settle = histories.parent / "checker.json", ("--settle", f"{SETTLE_S:g}")
    checked = subprocess.run(
        [sys.executable, "-m", CHECKER, *settle, "--json-file", str(as_json), *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},  # where the checker is
    )
    (histories.parent / "checker.txt").write_text(checked.stdout + checked.stderr)
    if as_json.exists():
        part.not_judged = not_judged(json.loads(as_json.read_text()))
    if checked.returncode == 1:
        part.findings.append(f"the checker:\n{violated_rules(checked.stdout)}")
    elif checked.returncode != 0:
        part.invalid.append(f"the checker gave no verdict: {(checked.stdout + checked.stderr)[-500:]}")


def _judge_denials(part: Part, history: History, denials: Sequence[Denial]) -> None:
    part.findings += breaches(history, denials)
    part.denied = refusals(history, denials)
    met = {denial.who: 0 for denial in denials}
    for denial in denials:
        met[denial.who] += refusals(history, [denial])
    unmet = [who for who, count in met.items() if not count]
    if unmet:
        part.invalid.append(f"nobody saw that these were denied: {', '.join(unmet)}")


def _as_json(part: Part) -> dict[str, object]:
    return {**asdict(part), "verdict": part.verdict}
