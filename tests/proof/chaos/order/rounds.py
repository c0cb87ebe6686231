"""One round: clients write, a broker is struck, all is read, and the checker judges."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Final

from chaos.order.brokers import Brokers
from chaos.order.clients import Committer, PlainProducer, group, read_all, transactional
from histories.check import RULES, check
from histories.findings import Finding
from histories.model import History

PARTITIONS: Final = 3
BEFORE_S: Final = 1.5
AFTER_S: Final = 3.0
LISTED_S: Final = 3.0
"""How long Metadata list a broker that has ended."""

JUDGED: Final = [rule for rule in RULES if rule.name in ("AcknowledgedWritesStay", "ProducersKeepTheirOrder")]
"""Nobody notes here which leaders there were, which the other rules ask for."""

KILLED_S: Final = 2.0
"""How long a broker that was killed stays away."""


Opened = Callable[[str, str, str], AbstractContextManager[Committer]]

COORDINATED: Final[dict[str, Opened]] = {"__transaction_state": transactional, "__consumer_offsets": group}
"""Clients by the topic in which their coordinator writes."""


@dataclass(frozen=True, slots=True)
class Round:
    """What came of it. Gaps of ``coordinators`` are those of transactions and of groups that were struck."""

    strike: str
    judged: int
    out_of_order: int
    findings: tuple[Finding, ...]
    """Also of acknowledged records that are lost."""
    gap_s: float
    coordinators: dict[str, float]


def kill(brokers: Brokers, number: int) -> Round:
    """The coordinator of transactions and that of the group are struck in turn."""
    struck = brokers.leader_of(list(COORDINATED)[number % 2])

    def strike() -> None:
        brokers.kill(struck)
        time.sleep(KILLED_S)
        brokers.revive(struck)

    return _round(brokers, f"kill-{number}", struck, strike)


def pause(brokers: Brokers, number: int) -> Round:
    """SIGSTOP for one and a half sessions, and at least so long that Metadata would list it no longer."""
    struck = brokers.leader_of("records")
    session_s = brokers.session_ms / 1_000
    seconds = max(1.5 * session_s, session_s + LISTED_S + 1.0)
    return _round(brokers, f"pause-{number}", struck, lambda: brokers.pause(struck, seconds))


def prepare(brokers: Brokers) -> None:
    """Topics, those of coordinators too."""
    for topic in ("records", "copies"):
        brokers.create_topic(topic, PARTITIONS)
    for open_client in COORDINATED.values():
        with open_client(brokers.bootstrap, "copies", "first") as one:
            stop = threading.Event()
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(one.run, stop)
                time.sleep(BEFORE_S)
                stop.set()
                running.result()
    for topic in COORDINATED:
        brokers.wait_in_sync(topic, 1)


def _round(brokers: Brokers, name: str, struck: int, strike: Callable[[], None]) -> Round:
    where = brokers.bootstrap
    producers = [
        PlainProducer(where, "records", PARTITIONS, f"{name}/{acks}/{number}", acks)
        for acks in (1, -1)
        for number in range(2)
    ]
    with ExitStack() as undo:
        committers: dict[str, Committer] = {}
        for topic, open_client in COORDINATED.items():
            if brokers.leader_of(topic) == struck:
                committers[topic] = undo.enter_context(open_client(where, "copies", f"{name}-{topic}"))
        stop = threading.Event()
        runs = [one.run for one in producers] + [one.run for one in committers.values()]
        with ThreadPoolExecutor(len(runs)) as pool:
            running = [pool.submit(run, stop) for run in runs]
            try:
                time.sleep(BEFORE_S)
                began = time.monotonic()
                strike()
                time.sleep(AFTER_S)
                ended = time.monotonic()
            finally:
                stop.set()
            for one in running:
                one.result()
        gaps = {topic: one.longest_gap_s(began, ended) for topic, one in committers.items()}
    for topic, partitions in (("records", PARTITIONS), ("copies", PARTITIONS), ("__transaction_state", 1)):
        brokers.wait_in_sync(topic, partitions)
    return _judged(brokers, name, producers, gaps)


def _judged(brokers: Brokers, name: str, producers: list[PlainProducer], gaps: dict[str, float]) -> Round:
    """Only what this round wrote: the topic has the records of earlier ones, too."""
    sends = [send for one in producers for send in one.sends]
    own = {send.value for send in sends}
    finals = read_all(brokers.bootstrap, "records", PARTITIONS)
    for final in finals:
        final.records = [record for record in final.records if record[1] in own]
    verdict = check(History(sends=sends, finals=finals), rules=JUDGED)
    (order,) = (one for one in verdict.judgements if one.rule.name == "ProducersKeepTheirOrder")
    return Round(
        name,
        order.judged.count,
        len(order.findings),
        verdict.findings,
        max(one.longest_gap_s for one in producers),
        gaps,
    )
