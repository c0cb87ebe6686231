"""All clients of a run: which there are, and that those that crash are replaced under another name."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from chaos.access import Access
from chaos.clients.disturbances import TWIN, Disturbances
from chaos.clients.watch import Answers, Watch
from chaos.machines.processes import MARK, mark_of, send
from chaos.teams import BLUE, GUEST, LENT, RED

CRASH_EVERY_S = (20.0, 60.0)
"""Between two crashes of clients."""
_POLL_S = 0.2
MOVED_AT_ONCE = 4
"""Clients that leave because another password counts."""
_CLIENT = Path(__file__).with_name("client.py")


@dataclass(frozen=True)
class ClientPlan:
    """A client; ``rate`` is its share of the run's rate."""

    name: str
    role: str
    library: str
    rate: float
    acks: Any = "all"
    idempotent: bool = False
    compression: str = "none"
    isolation: str | None = None
    """Of a consumer of topics with transactions: what it reads."""
    user: str = ""
    """As whom it logs in, and not as one of the team whose topics it is at; see ``team``."""

    @property
    def team(self) -> str:
        """As whom it logs in where that is asked."""
        return self.user or (BLUE if self.is_transacted else RED)

    @property
    def is_member(self) -> bool:
        """Of the consumer group."""
        return self.role in ("member", "static-member")

    @property
    def has_twin(self) -> bool:
        """Whether its next life has the same identity for brokers, and takes it from this one."""
        return self.role == "static-member" or self.is_transactional

    @property
    def is_transactional(self) -> bool:
        """Whether it produces in transactions."""
        return self.role in ("transactions", "pipeline", "writes", "typed-writes")

    @property
    def is_typed(self) -> bool:
        """Whether its topic is the typed one."""
        return self.role in ("typed-writes", "typed-tail")

    @property
    def is_transacted(self) -> bool:
        """Whether its topics are those with transactions."""
        if self.is_typed:
            return False
        return self.is_transactional or self.isolation is not None or self.is_red_trespasser

    @property
    def is_red_trespasser(self) -> bool:
        """Of the red team, at the blue team's topics, which are those with transactions."""
        return self.role == "trespasser" and self.user == RED

    @property
    def is_watched(self) -> bool:
        """Whether it is restarted when it stands still: libraries of others, where they are known to hang."""
        return (self.is_member or self.is_transactional) and self.library not in OUR_LIBRARIES

    @property
    def kind(self) -> str:
        """One of ``KINDS``, or that of clients that a secured cluster has besides."""
        if self.user:
            return "secured"
        if self.role == "writes" or self.is_typed:
            return "typed" if self.is_typed else "writes"
        return "groups" if self.is_member else "transactions" if self.is_transacted else "plain"


OUR_LIBRARIES = ("spark", "sparklog")
KINDS = ("plain", "groups", "transactions", "writes", "typed")
"""Clients by what they use of Kafka."""


CLIENTS = (
    ClientPlan("producer-1", "producer", "confluent", 0.30, idempotent=True),
    ClientPlan("producer-2", "producer", "confluent", 0.20, idempotent=True, compression="gzip"),
    ClientPlan("producer-3", "producer", "kafka-python", 0.20, idempotent=True),
    ClientPlan("producer-4", "producer", "confluent", 0.10),
    ClientPlan("producer-5", "producer", "confluent", 0.10, acks=1),
    ClientPlan("producer-6", "producer", "confluent", 0.05, acks=0),
    ClientPlan("consumer-1", "tail", "confluent", 1.0),
    ClientPlan("consumer-2", "reader", "confluent", 0.02),
    ClientPlan("consumer-3", "reader", "kafka-python", 0.01),
    ClientPlan("member-1", "member", "confluent", 1.0),
    ClientPlan("member-2", "static-member", "confluent", 1.0),
    ClientPlan("member-3", "member", "kafka-python", 1.0),
    ClientPlan("member-4", "static-member", "kafka-python", 1.0),
    ClientPlan("transactions-1", "transactions", "confluent", 0.10, idempotent=True),
    ClientPlan("transactions-2", "transactions", "aiokafka", 0.10, idempotent=True),
    ClientPlan("pipeline-1", "pipeline", "confluent", 1.0, idempotent=True),
    ClientPlan("pipeline-2", "pipeline", "confluent", 1.0, idempotent=True),
    ClientPlan("writes-1", "writes", "sparklog", 0.10, idempotent=True),
    ClientPlan("typed-1", "typed-writes", "sparklog", 0.20, idempotent=True),
    ClientPlan("typed-2", "typed-tail", "sparklog", 1.0),
    ClientPlan("typed-3", "typed-tail", "sparklog", 1.0),
    ClientPlan("consumer-5", "tail", "confluent", 1.0, isolation="committed"),
    ClientPlan("consumer-6", "tail", "confluent", 1.0, isolation="uncommitted"),
)
SPARK_CLIENTS = (
    ClientPlan("producer-7", "producer", "spark", 0.10, idempotent=True),
    ClientPlan("consumer-4", "tail", "spark", 1.0),
)
"""Applications of their own, beside the one that runs the brokers."""
SECURED_CLIENTS = (
    ClientPlan("trespasser-1", "trespasser", "confluent", 0.01, acks=1, user=RED),
    ClientPlan("trespasser-2", "trespasser", "sparklog", 0.03, acks=1, user=BLUE),
    ClientPlan("trespasser-3", "trespasser", "sparklog", 0.03, acks=1, user=RED),
    ClientPlan("guest-1", "guest", "sparklog", 0.05, user=GUEST),
)
"""Beside the others on a secured cluster: who always is denied, and who is let in by one rule.

Trespassers ask for acks=1: a topic whose sends with acks=all are all refused after healing is a finding.
"""


WRITERS = ("producer", "transactions", "writes", "typed-writes", "guest", "trespasser", "pipeline")
ANSWERED = {
    "producer": "send",
    "member": "commit",
    "static-member": "commit",
    "transactions": "finish",
    "pipeline": "finish",
    "writes": "written",
    "guest": "send",
    "typed-writes": "written",
}
"""What a client of a role is answered, as its history calls it; others poll."""
REFUSED = ("trespasser",)
"""Roles whose sends fail; to them that is an answer."""


def _answer_of(plan: ClientPlan) -> str:
    """What stands in the lines of its history that tell of an answer."""
    kind = "fail" if plan.role in REFUSED else "ok"
    return f'"type":"{kind}","f":"{"send" if plan.role in REFUSED else ANSWERED.get(plan.role, "poll")}"'


class Workload:
    """Clients in processes of their own, from ``start`` to ``stop``."""

    def __init__(
        self,
        access_of: Callable[[str], Access],
        topics: Mapping[str, int],
        folder: Path,
        rng: Random,
        rate: float,
        clients: Sequence[ClientPlan] = CLIENTS,
        compacted: Collection[str] = (),
        transacted: Mapping[str, int] | None = None,
        typed: Mapping[str, int] | None = None,
    ) -> None:
        """``access_of``: how clients of a team connect. It is asked at each start of one, and whom it answers
        otherwise later is moved. Records of ``compacted`` topics have keys; some are tombstones.
        ``transacted``: the topics with transactions; pipelines copy the first of them into the second.
        ``typed``: the topic with columns.
        """
        self.histories = folder / "histories"
        self.crashes = 0
        self.restarts: Counter[str] = Counter()
        """How often each client stood still, and was restarted."""
        self._folder, self._access_of, self._topics = folder, access_of, dict(topics)
        self._rng, self._rate, self._clients = rng, rate, clients
        self._compacted = sorted(compacted)
        self._transacted, self._typed = dict(transacted or {}), dict(typed or {})
        self._lives: dict[str, int] = {}
        self._accesses: dict[str, Access] = {}
        """How the last life of each client connects."""
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._disturbances = Disturbances(Random(rng.random()))
        self._watch, self._about_to_end = Watch(), set[str]()
        self._counts = {plan.name: Answers(_answer_of(plan)) for plan in clients}
        self._count_lock = threading.Lock()
        self._leave, self._is_calm = threading.Event(), threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="clients", daemon=True)

    def start(self) -> None:
        self.histories.mkdir(parents=True, exist_ok=True)
        for plan in self._clients:
            self._launch(plan)
        self._keeper.start()

    def crash(self, name: str) -> None:
        """It is replaced in a moment."""
        self.crashes += 1
        self._running[name].kill()

    def crash_nobody_more(self) -> None:
        """From now on clients live and do not stall; who ended by itself is still replaced."""
        self._is_calm.set()

    def wait_for_all(self, timeout_s: float) -> list[str]:
        """Until each client was given an answer, counted from now: who still was not, in the end."""
        before = {plan.name: self._answers(plan) for plan in self._clients}
        deadline = time.monotonic() + timeout_s
        while True:
            idle = [plan.name for plan in self._clients if self._answers(plan) <= before[plan.name]]
            if not idle or time.monotonic() > deadline:
                for name in idle:  # its log tells where it is
                    self._running[name].send_signal(signal.SIGUSR1)
                return idle
            time.sleep(_POLL_S)

    def _answers(self, plan: ClientPlan) -> int:
        """How many sends, commits or polls of its lives, so far, were answered."""
        lives = range(self._lives[plan.name])
        with self._count_lock:
            return self._counts[plan.name].count(
                self.histories / f"{plan.name}-{life}.jsonl" for life in lives
            )

    def stop(self, timeout_s: float, between_s: float) -> list[str]:
        """Let producers finish, and ``between_s`` later consumers; who had to be killed."""
        self._leave.set()
        if self._keeper.is_alive():
            self._keeper.join()
        self._disturbances.go_on(is_over=True)
        killed: list[str] = []
        for roles in (
            ("producer", "transactions", "writes", "typed-writes", "guest", "trespasser"),
            ("pipeline",),
        ):  # each reads what the one before wrote
            ending = [plan.name for plan in self._clients if plan.role in roles]
            killed += self._end(ending, timeout_s)
            time.sleep(between_s if ending else 0.0)
        return killed + self._end(
            [plan.name for plan in self._clients if plan.role not in WRITERS], timeout_s
        )

    def _end(self, names: Sequence[str], timeout_s: float) -> list[str]:
        killed = []
        for name in names:
            send(self._running[name].pid, signal.SIGTERM)
        deadline = time.monotonic() + timeout_s
        for name in names:
            process = self._running[name]
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed.append(name)
        return killed

    def _launch(self, plan: ClientPlan) -> None:
        life = self._lives.get(plan.name, 0)
        self._lives[plan.name] = life + 1
        self._watch.begin(plan.name)
        access = self._accesses[plan.name] = self._access_of(plan.team)
        settings = {
            "role": plan.role,
            "library": plan.library,
            "name": f"{plan.name}/{life}",
            "access": asdict(access),
            "topics": self._topics_of(plan),
            "isolation": plan.isolation,
            "compacted": self._compacted,
            "folder": str(self.histories),
            "seed": self._rng.getrandbits(32),
            "acks": plan.acks,
            "idempotent": plan.idempotent,
            "rate": max(0.5, plan.rate * self._rate),
            "compression": plan.compression,
        }
        logs = self._folder / "logs"
        logs.mkdir(exist_ok=True)
        with (logs / f"{plan.name}.log").open("ab") as log:
            self._running[plan.name] = subprocess.Popen(
                [sys.executable, "-P", str(_CLIENT), json.dumps(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, MARK: mark_of(self._folder)},
                start_new_session=True,
            )

    def _topics_of(self, plan: ClientPlan) -> Mapping[str, int]:
        if plan.role == "guest":
            return {LENT: self._topics[LENT]}
        if plan.is_typed:
            return self._typed
        return self._transacted if plan.is_transacted else self._topics

    def _keep(self) -> None:
        """Crash one now and then, and replace whatever ended."""
        next_crash = time.monotonic() + self._rng.uniform(*CRASH_EVERY_S)
        while not self._leave.wait(_POLL_S):
            if time.monotonic() > next_crash and not self._is_calm.is_set():
                next_crash = time.monotonic() + self._rng.uniform(*CRASH_EVERY_S)
                self.crash(self._rng.choice(self._clients).name)
            if self._disturbances.is_due() and not self._is_calm.is_set():
                self._disturb()
            self._disturbances.go_on(is_over=self._is_calm.is_set())
            self._move()
            for plan in self._clients:
                if plan.is_watched:
                    self._end_if_stuck(plan)
                if self._running[plan.name].poll() is not None:
                    self._launch(plan)

    def _move(self) -> None:
        """Some of those who would connect otherwise now: they leave in good order, and come back."""
        moving = [plan for plan in self._clients if self._accesses[plan.name] != self._access_of(plan.team)]
        for plan in moving[:MOVED_AT_ONCE]:
            self._disturbances.leave(self._running[plan.name])

    def _end_if_stuck(self, plan: ClientPlan) -> None:
        """First it tells its log where it is; it ends at the next look."""
        if not self._watch.is_stuck(plan.name, self._answers(plan)):
            self._about_to_end.discard(plan.name)
        elif plan.name not in self._about_to_end:
            self._about_to_end.add(plan.name)
            self._running[plan.name].send_signal(signal.SIGUSR1)
        else:
            self.restarts[plan.name] += 1
            self._running[plan.name].kill()
            self._running[plan.name].wait()

    def _disturb(self) -> None:
        """A member of the group or a transactional producer, if there is any."""
        some = [plan for plan in self._clients if plan.is_member or plan.is_transactional]
        if some:
            plan = self._rng.choice(some)
            if self._disturbances.begin(self._running[plan.name], has_twin=plan.has_twin) == TWIN:
                self._launch(plan)
