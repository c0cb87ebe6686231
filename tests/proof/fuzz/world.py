"""The clusters under test, in this process, and what must stay as it is in them.

*Public*: two brokers with a listener for clients and one for brokers. Clients' requests go there, and records
are kept there. *Trusted*: a broker whose one listener serves brokers' requests too, and its controller. A
request of a broker may rightly ruin what that cluster knows, so nothing is kept there.
"""

import logging
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fuzz.both_ways import both_ways
from fuzz.surroundings import KEPT_TOPIC, PLAYED_TOPICS, Surroundings
from sparklog.broker.apis import HANDLERS
from sparklog.client.admin import NewTopic
from sparklog.core.apis.api import ListenerKind
from sparklog.core.apis.api_table import APIS
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.settings.setting import render
from sparklog.model.settings.settings_table import TOPIC_SETTINGS
from sparklog.testing import InProcessCluster, Record

Address = tuple[str, int]

COMMON_SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1",
    "offsets.topic.num.partitions": "3",
}
LISTENERS: Final = {
    "listeners": "INSIDE://127.0.0.1:0,CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,CLIENTS:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
}
PUBLIC_BROKERS: Final = 2
PATIENCE_S: Final = 30.0
PAUSE_S: Final = 0.05
KEPT_RECORDS: Final = 60
KEPT_PARTITIONS: Final = 3
PARTITIONS_MAX: Final = 40
"""A played topic with more partitions than this is made anew."""

EXPECTED: Final = ("cannot be taken up",)
"""Words of complaints that are right: a role that contradicts itself, which only a controller with a bug
sends, is answered with INVALID_REQUEST, and its trace is logged."""

MEMORY_GROWTH_MAX_MB: Final = 600
"""How much the process may grow over the whole run: frames of 100 MB are legal, and two may be in memory."""


class World:
    """A context manager."""

    def __init__(self) -> None:
        self.complaints = Complaints()
        self.surroundings = Surroundings({})
        self._public = InProcessCluster(brokers=PUBLIC_BROKERS, settings={**COMMON_SETTINGS, **LISTENERS})
        self._trusted = InProcessCluster(brokers=1, settings=COMMON_SETTINGS)
        self.by_form: list[int] = []
        """The correlation ids of produces that brokers have read by their form."""
        self._kept: list[Record] = []
        self._memory_mb = 0

    @contextmanager
    def running(self) -> Iterator["World"]:
        with (
            self.complaints.listened_to(),
            both_ways(self.complaints.add) as self.by_form,
            self._public,
            self._trusted,
        ):
            self._make_kept()
            self.tidy()
            self._memory_mb = _peak_memory_mb()
            yield self

    def address_for(self, api_key: int, place: int) -> Address:
        """Where a request goes; ``place`` is any number, and chooses among equals.

        One of five requests that clients may not make is made by a client all the same.
        """
        listeners = APIS[api_key].listeners
        if ListenerKind.clients in listeners or place % 5 == 0:
            endpoint = self._public.brokers[1 + place % PUBLIC_BROKERS].broker.endpoints["CLIENTS"]
            return endpoint.host, endpoint.port
        if ListenerKind.brokers in listeners:
            node = self._trusted.brokers[1].node
            return node.host, node.port
        assert self._trusted.controller is not None
        return self._trusted.brokers[1].node.host, self._trusted.controller.port

    def may_answer(self, api_key: int, address: Address) -> bool:
        """Whether the API is served there."""
        listeners = APIS[api_key].listeners
        if address == self.address_of_controller:
            return ListenerKind.controller in listeners
        is_trusted = address[1] == self._trusted.brokers[1].node.port
        return api_key in HANDLERS and (ListenerKind.clients in listeners or is_trusted)

    @property
    def address_of_controller(self) -> Address:
        assert self._trusted.controller is not None
        return self._trusted.brokers[1].node.host, self._trusted.controller.port

    # What must stay

    def _make_kept(self) -> None:
        own = {name: render(one.default) for name, one in TOPIC_SETTINGS.items() if "throttled" not in name}
        configs = {**own, "retention.ms": "-1"}
        self._public.create_topic(KEPT_TOPIC, partitions=KEPT_PARTITIONS, configs=configs)
        self._public.wait_for_isr(KEPT_TOPIC, PUBLIC_BROKERS)
        self._public.produce(KEPT_TOPIC, [(f"{n}", f"kept-{n}") for n in range(KEPT_RECORDS)])
        self._kept = self._public.consume(KEPT_TOPIC, at_least=KEPT_RECORDS)

    def check(self) -> Iterator[str]:
        """What is not as it must be."""
        yield from self.complaints.take()
        for server in (*self._public.brokers.values(), *self._trusted.brokers.values()):
            if server.failure is not None:
                yield f"a broker has stopped: {server.failure}"
        try:
            records = self._public.consume(KEPT_TOPIC, at_least=KEPT_RECORDS)
        except (SparklogError, OSError) as error:
            yield f"the kept records cannot be read: {error}"
        else:
            if records != self._kept:
                yield f"the kept records have changed: {len(records)}, and there were {len(self._kept)}"
        grown_mb = _peak_memory_mb() - self._memory_mb
        if grown_mb > MEMORY_GROWTH_MAX_MB:
            yield f"the process has grown by {grown_mb} MB at its peak"

    # What is played with

    def tidy(self) -> None:
        """Bring played topics back, delete what requests have left behind, and learn today's ids.

        Raises SparklogError if the cluster does not do that any more.
        """
        admin = self._public.admin
        described = {topic.name: topic for topic in admin.topics()}
        strange = [
            name
            for name, topic in described.items()
            if name != KEPT_TOPIC and (name not in PLAYED_TOPICS or len(topic.partitions) > PARTITIONS_MAX)
        ]
        if strange:
            admin.delete_topics(strange)
        for name in PLAYED_TOPICS:
            if name not in described or name in strange:
                self._make_played(name)
        ids = {topic.name: topic.topic_id.bytes for topic in admin.topics()}
        self.surroundings = Surroundings(ids, self.surroundings.seen)

    def _make_played(self, name: str) -> None:
        """Make a topic, once the one before it is gone; it may still be marked for deletion.

        A request that is still under way may make it, too.
        """
        topic = NewTopic(name=name, partitions=2, replication_factor=PUBLIC_BROKERS)
        deadline = time.monotonic() + PATIENCE_S
        while name not in self._public.admin.list_topics():
            try:
                self._public.admin.create_topics([topic])
            except KafkaError as error:
                if error.code is not ErrorCode.topic_already_exists or time.monotonic() > deadline:
                    raise
                time.sleep(PAUSE_S)


class Complaints(logging.Handler):
    """Errors in the log, and exceptions that ended a thread: none is expected, whatever a client sends."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = f"{record.name}: {record.getMessage()}"
        if record.exc_info is not None:
            text += f"\n{logging.Formatter().formatException(record.exc_info)}"
        if not any(words in text for words in EXPECTED):
            self._found.append(text)

    def add(self, what: str) -> None:
        self._found.append(what)

    def take(self) -> Iterator[str]:
        while self._found:
            yield f"in the log: {self._found.pop(0)}"

    @contextmanager
    def listened_to(self) -> Iterator[None]:
        log = logging.getLogger("sparklog")
        propagated, hook = log.propagate, threading.excepthook
        log.addHandler(self)
        log.propagate = False  # one warning for each damaged frame
        threading.excepthook = lambda ended: self._found.append(f"a thread ended: {ended.exc_value!r}")
        try:
            yield
        finally:
            log.removeHandler(self)
            log.propagate, threading.excepthook = propagated, hook


def _peak_memory_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024
