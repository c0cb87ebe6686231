"""Calls to any broker or to partition leaders, retried when an answer shows that our metadata is stale.

A client's metadata is always a little old. Every answer that contradicts it (not the leader, an unknown topic
just after its creation, a connection that ended) leads to newer metadata, a short pause and another try,
until a deadline. Then the caller gets an error that names the cluster and the last obstacle. Every wait is
bounded.

``ClusterClient`` is safe to use from any thread: each request has a connection to itself while it lasts.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from sparklog.client.calls.bootstrap import Endpoint, parse_bootstrap_servers
from sparklog.client.calls.connections import BrokerConnection, Connect, ConnectionPool, PendingReply
from sparklog.client.calls.opened_connections import opened_by
from sparklog.client.calls.retry import REPORTED_AFTER_S, Backoff, Deadline, Tell, reported_if_long
from sparklog.client.errors import ClientClosed, ClusterUnavailable, SecurityRefused
from sparklog.client.metadata.cluster_metadata import (
    ClusterMetadata,
    KnownCoordinators,
    KnownLeader,
    TopicMetadata,
)
from sparklog.client.metadata.held_metadata import HeldMetadata
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.ids import BrokerId, TopicPartition
from sparklog.model.time import Clock
from sparklog.network.clock import SystemClock
from sparklog.network.dialing.connector import IN_THE_CLEAR, Connector

T = TypeVar("T")
Answer = tuple[ErrorCode, T | None]
"""What one partition answered: a code, and its value if the code is ``none``."""

UNREACHABLE: Final = (ErrorCode.network_exception, None)
CONNECT_TIMEOUT_MS: Final = 10_000
NEW_TOPIC_WAIT_MS: Final = 5_000
"""How long a new topic may be unknown: brokers receive it a moment after its creation."""

_UNKNOWN: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id)


class ClusterClient:
    """See the module. ``retry_timeout_ms`` bounds every call unless the call gives its own bound."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        client_id: str = "sparklog",
        request_timeout_ms: int = 30_000,
        retry_timeout_ms: int = 60_000,
        metadata_max_age_ms: int = 300_000,
        auto_create_topics: bool = False,
        client_rack: str = "",
        clock: Clock | None = None,
        connect: Connect | None = None,
        connector: Connector = IN_THE_CLEAR,
        tell: Tell | None = None,
    ) -> None:
        """``tell`` gets a line for the user if no broker has answered for some seconds."""
        self.bootstrap_servers = bootstrap_servers
        self.client_id = client_id
        self.client_rack = client_rack
        """This client's rack: the brokers may redirect its readers to a replica in that rack (KIP-392)."""
        self.request_timeout_ms = request_timeout_ms
        self.retry_timeout_ms = retry_timeout_ms
        self.clock: Clock = clock or SystemClock()
        self._bootstrap = parse_bootstrap_servers(bootstrap_servers)
        self._pool = ConnectionPool(connect or opened_by(connector, client_id), self.clock)
        self._tell = tell
        self._closed = threading.Event()
        self.coordinators: Final = KnownCoordinators()
        self._held = HeldMetadata(
            self.clock, self._call_any, max_age_ms=metadata_max_age_ms, auto_create_topics=auto_create_topics
        )
        self._preferred: Endpoint | None = None  # the last broker that answered a call to any

    def __enter__(self) -> "ClusterClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every connection; calls that wait, in any thread, raise an error."""
        self._closed.set()
        self._pool.close()

    def reach(self, timeout_ms: int) -> None:
        """Wait for any broker's first answer; ClusterUnavailable if no broker answers in time.

        Each broker gets only a share of the time, so that a silent broker does not use up all of it.
        """
        share_ms = max(1, timeout_ms // (2 * len(self._bootstrap)))
        self._held.fetch([], self.deadline(timeout_ms), share_ms)

    # Metadata.

    def metadata(
        self, topics: Sequence[str] | None = None, *, max_age_ms: int | None = None
    ) -> ClusterMetadata:
        """The cluster, with these topics (None: exactly all topics, always requested again).

        An unknown topic is included with its error code. ``max_age_ms=0`` always requests new metadata.
        """
        return self._held.fresh(topics, max_age_ms) or self._held.fetch(topics, self.deadline())

    def topic(self, name: str, *, timeout_ms: int = NEW_TOPIC_WAIT_MS) -> TopicMetadata:
        """An existing topic with all its partitions; KafkaError if there is no such topic.

        Waits up to ``timeout_ms``, because a broker may not know a topic that was created a moment ago.
        """
        topic = self.metadata([name]).topics.get(name)
        deadline = self.deadline(timeout_ms)
        backoff = Backoff(deadline, self._closed)
        while topic is None or topic.error_code is not ErrorCode.none:
            code = ErrorCode.unknown_topic_or_partition if topic is None else topic.error_code
            if not code.retriable:
                raise self._topic_error(code, name)
            backoff.pause(partial(self._topic_error, code, name))
            topic = self._held.fetch([name], self.deadline()).topics.get(name)
        return topic

    @property
    def latest_metadata(self) -> ClusterMetadata:
        """The metadata that we have, however old; sends no request."""
        return self._held.latest

    def refresh(self, topics: Sequence[str], seen: ClusterMetadata, deadline: Deadline) -> ClusterMetadata:
        """Metadata newer than ``seen``, which is stale; threads that refresh at once share a request."""
        return self._held.refresh(topics, seen, deadline)

    # Calls.

    def call_any(
        self,
        message: Any,
        error_of: Callable[[Any], ErrorCode] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Any:
        """The first answer of any broker; ClusterUnavailable if no broker answers in time.

        ``error_of`` finds an answer's error code: while it is retriable, the next broker is asked. Once the
        time is over, the last such answer is returned, with the broker's words: it says more than silence.
        """
        deadline = self.deadline(timeout_ms)
        backoff = Backoff(deadline, self._closed)
        refused: Any = None
        while True:
            try:
                response = self._call_any(message, deadline)
            except ClusterUnavailable:
                if refused is None:
                    raise
                return refused
            code = error_of(response) if error_of else ErrorCode.none
            if not code.retriable:
                return response
            refused = response
            self._prefer_another()
            if not backoff.waited():
                return refused

    def call_controller(
        self,
        message: Any,
        error_of: Callable[[Any], ErrorCode] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Any:
        """The controller's answer: any live broker forwards the request, or answers that none is elected."""
        return self.call_any(message, error_of, timeout_ms=timeout_ms)

    def call_broker(self, broker_id: int, message: Any, *, timeout_ms: int | None = None) -> Any:
        """One broker's answer, asked once; OSError if it is not reached, KafkaError if it is unknown."""
        deadline = self.deadline(timeout_ms)
        known = BrokerId(broker_id)
        broker = self._held.latest.brokers.get(known) or self.metadata([], max_age_ms=0).brokers.get(known)
        if broker is None:
            raise KafkaError(
                ErrorCode.broker_not_available, f"broker {broker_id} is not alive in {self.bootstrap_servers}"
            )
        return self.call_endpoint(Endpoint(broker.host, broker.port), message, deadline)

    def call_endpoint(self, endpoint: Endpoint, message: Any, deadline: Deadline) -> Any:
        """The answer of the broker at one address, asked once; OSError if it is not reached."""
        connection = self.borrow(endpoint, deadline)
        try:
            response = connection.call(
                message, timeout_ms=max(1, min(deadline.remaining_ms, self.request_timeout_ms))
            )
        except BaseException:
            self._pool.discard(connection)
            raise
        self._pool.give_back(endpoint, connection)
        return response

    def require(self, api_key: int) -> None:
        """KafkaError unless the first broker that answers serves the API; ClusterUnavailable if none does."""
        self._first_answer(partial(self._require_of, api_key), self.deadline(), None, [])

    def _require_of(self, api_key: int, endpoint: Endpoint, deadline: Deadline) -> None:
        connection = self.borrow(endpoint, deadline)
        try:
            connection.version_for(api_key)
        except BaseException:
            self._pool.discard(connection)
            raise
        self._pool.give_back(endpoint, connection)

    def call_leaders(
        self,
        topic_partitions: Iterable[TopicPartition],
        build: Callable[[Mapping[TopicPartition, KnownLeader]], Any],
        read: Callable[[Any], Mapping[TopicPartition, Answer[T]]],
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, T]:
        """What each partition's leader answers, one request per leader, tried again until all have answered.

        ``build`` makes the request for the partitions of one leader, ``read`` takes its response apart.
        The first error code that is not retriable raises KafkaError with the partition's name.
        """
        deadline = self.deadline(timeout_ms)
        new_topic_deadline = self.deadline(min(NEW_TOPIC_WAIT_MS, deadline.timeout_ms))
        backoff = Backoff(deadline, self._closed)
        results: dict[TopicPartition, T] = {}
        open_partitions = list(dict.fromkeys(topic_partitions))
        seen = self.metadata(_topics_of(open_partitions)) if open_partitions else self._held.latest
        while open_partitions:
            answers = self.ask_leaders(open_partitions, seen, build, read, deadline)
            obstacles: dict[TopicPartition, ErrorCode] = {}
            for topic_partition in open_partitions:
                code, value = answers.get(topic_partition, (ErrorCode.unknown_server_error, None))
                if code is ErrorCode.none:
                    results[topic_partition] = value  # type: ignore[assignment]  # a value, as there is no error
                else:
                    obstacles[topic_partition] = code
            open_partitions = list(obstacles)
            if obstacles:
                self._raise_if_hopeless(obstacles, new_topic_deadline)
                backoff.pause(partial(self.gave_up, obstacles, deadline))
                seen = self._refresh_after(obstacles, seen, deadline)
        return results

    def ask_leaders(
        self,
        topic_partitions: Iterable[TopicPartition],
        seen: ClusterMetadata,
        build: Callable[[Mapping[TopicPartition, KnownLeader]], Any],
        read: Callable[[Any], Mapping[TopicPartition, Answer[T]]],
        deadline: Deadline,
    ) -> dict[TopicPartition, Answer[T]]:
        """One round of ``call_leaders``: every leader that ``seen`` names is asked once, all at a time."""
        groups, answers = _by_leader(topic_partitions, seen)
        exchanges = [_Asked(leaders, seen.endpoint(broker_id)) for broker_id, leaders in groups.items()]
        try:
            for asked in exchanges:
                self._ask(asked, build, deadline)
            for asked in exchanges:
                answers.update(self._hear(asked, read, deadline))
        finally:
            for asked in exchanges:
                if asked.connection is not None:  # its reply was not read
                    self.discard(asked.connection)
        return answers

    # Connections for callers that keep several requests in flight.

    def endpoints(self) -> list[Endpoint]:
        """Brokers to try, the last one that answered first, those of ``bootstrap.servers`` last."""
        preferred = [self._preferred] if self._preferred else []
        live = [Endpoint(broker.host, broker.port) for broker in self._held.latest.brokers.values()]
        return list(dict.fromkeys([*preferred, *live, *self._bootstrap]))

    def borrow(self, endpoint: Endpoint, deadline: Deadline) -> BrokerConnection:
        """A connection for this caller alone, until ``give_back`` or ``discard``; OSError if none is made."""
        return self._pool.borrow(endpoint, max(1, min(deadline.remaining_ms, CONNECT_TIMEOUT_MS)))

    def give_back(self, endpoint: Endpoint, connection: BrokerConnection) -> None:
        self._pool.give_back(endpoint, connection)

    def discard(self, connection: BrokerConnection) -> None:
        self._pool.discard(connection)

    # Help with waiting.

    def deadline(self, timeout_ms: int | None = None) -> Deadline:
        return Deadline(self.clock, self.retry_timeout_ms if timeout_ms is None else timeout_ms)

    def backoff(self, deadline: Deadline) -> Backoff:
        """Pauses that ``close`` ends."""
        return Backoff(deadline, self._closed)

    def wait(self, pause_ms: int) -> None:
        """Pause; ``close`` ends it, with ClientClosed."""
        self._closed.wait(pause_ms / 1_000)
        self._refuse_if_closed()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def gave_up(self, obstacles: Mapping[TopicPartition, ErrorCode], deadline: Deadline) -> KafkaError:
        """The error for partitions that still refuse when the time is up."""
        topic_partition, code = next(iter(obstacles.items()))
        more = f" (and {len(obstacles) - 1} more partitions)" if len(obstacles) > 1 else ""
        return KafkaError(
            code, f"{topic_partition}{more} for {deadline.timeout_ms} ms, asked at {self.bootstrap_servers}"
        )

    # Inside.

    def _refresh_after(
        self, obstacles: Mapping[TopicPartition, ErrorCode], seen: ClusterMetadata, deadline: Deadline
    ) -> ClusterMetadata:
        """Newer metadata. If no broker answers in time, a leader's own refusal is raised: it says more."""
        try:
            return self.refresh(_topics_of(obstacles), seen, deadline)
        except ClusterUnavailable:
            refusals = {
                each: code for each, code in obstacles.items() if code is not ErrorCode.network_exception
            }
            if not refusals:
                raise
            raise self.gave_up(refusals, deadline) from None

    def _ask(
        self,
        asked: "_Asked",
        build: Callable[[Mapping[TopicPartition, KnownLeader]], Any],
        deadline: Deadline,
    ) -> None:
        try:
            asked.connection = self.borrow(asked.endpoint, deadline)
            asked.reply = asked.connection.send(build(asked.leaders))
        except OSError:
            asked.reply = None

    def _hear(
        self,
        asked: "_Asked",
        read: Callable[[Any], Mapping[TopicPartition, Answer[T]]],
        deadline: Deadline,
    ) -> Mapping[TopicPartition, Answer[T]]:
        unreachable: dict[TopicPartition, Answer[T]] = dict.fromkeys(asked.leaders, UNREACHABLE)
        if asked.reply is None or asked.connection is None:
            return unreachable
        try:
            response = asked.reply.result(max(1, min(deadline.remaining_ms, self.request_timeout_ms)))
        except OSError:
            return unreachable
        self.give_back(asked.endpoint, asked.connection)
        asked.connection = None
        return read(response)

    def _call_any(self, message: Any, deadline: Deadline, share_ms: int | None = None) -> Any:
        obstacles: list[str] = []
        tell = (
            self._tell if self._preferred is None else None
        )  # a broker that has answered is no wrong address

        def ask(endpoint: Endpoint, share: Deadline) -> Any:
            return self.call_endpoint(endpoint, message, share)

        with reported_if_long(tell, partial(self._silence, deadline, obstacles)):
            return self._first_answer(ask, deadline, share_ms, obstacles)

    def _first_answer(
        self,
        ask: Callable[[Endpoint, Deadline], T],
        deadline: Deadline,
        share_ms: int | None,
        obstacles: list[str],
    ) -> T:
        """The answer of the first broker that gives one; ``obstacles`` has what the others did meanwhile.

        If none does, and one of them refuses for good, its SecurityRefused is raised at once.
        """
        backoff = Backoff(deadline, self._closed)
        while True:
            obstacles.clear()
            is_silent = False
            refusal: SecurityRefused | None = None
            for endpoint in self.endpoints():
                share = deadline if share_ms is None else self.deadline(min(share_ms, deadline.remaining_ms))
                try:
                    response = ask(endpoint, share)
                except SecurityRefused as error:
                    refusal = refusal or error
                    continue
                except OSError as error:
                    self._refuse_if_closed()
                    is_silent |= isinstance(error, TimeoutError)
                    obstacles.append(str(error) if str(endpoint) in str(error) else f"{endpoint}: {error}")
                    continue
                self._preferred = endpoint
                return response
            self._preferred = None
            if refusal is not None:
                raise refusal
            backoff.pause(partial(self._unavailable, deadline, obstacles, is_silent))

    def _prefer_another(self) -> None:
        """Ask another broker the next time, if there is one."""
        brokers = self._held.latest.brokers.values()
        endpoints = [Endpoint(broker.host, broker.port) for broker in brokers] or [*self._bootstrap]
        at = endpoints.index(self._preferred) if self._preferred in endpoints else -1
        self._preferred = endpoints[(at + 1) % len(endpoints)]

    def _raise_if_hopeless(
        self, obstacles: Mapping[TopicPartition, ErrorCode], new_topic_deadline: Deadline
    ) -> None:
        for topic_partition, code in obstacles.items():
            if not code.retriable:
                raise KafkaError(code, f"{topic_partition} at {self.bootstrap_servers}")
            if code not in _UNKNOWN or not new_topic_deadline.is_over:
                continue
            topic = self._held.latest.topics.get(topic_partition.topic)
            if topic is not None and topic.partitions and topic_partition.partition not in topic.partitions:
                raise KafkaError(
                    code,
                    f"topic {topic_partition.topic!r} has {len(topic.partitions)} partitions, "
                    f"but none {topic_partition.partition}",
                )
            if not self._held.has_known(topic_partition.topic):
                raise self._topic_error(code, topic_partition.topic)

    def _topic_error(self, code: ErrorCode, name: str) -> KafkaError:
        if code is ErrorCode.invalid_replication_factor:  # a topic that metadata were to create
            return KafkaError(
                code,
                f"topic {name!r} cannot be created at {self.bootstrap_servers}: fewer brokers live than "
                "default.replication.factor says; start the missing ones, or create it with fewer replicas",
            )
        if code not in _UNKNOWN:
            return KafkaError(code, f"topic {name!r} at {self.bootstrap_servers}")
        return KafkaError(code, f"there is no topic {name!r} in the cluster at {self.bootstrap_servers}")

    def _silence(self, deadline: Deadline, obstacles: Sequence[str]) -> str:
        return (
            f"no broker of {self.bootstrap_servers} has answered for {REPORTED_AFTER_S:.0f} s "
            f"({'; '.join(obstacles) or 'no answer'}); is the cluster running, and is this "
            f"its address? It is tried for {deadline.timeout_ms // 1_000} s in all"
        )

    def _unavailable(
        self, deadline: Deadline, obstacles: Sequence[str], is_silent: bool
    ) -> ClusterUnavailable:
        question = "is the cluster running, and is this its address?"
        if is_silent:  # a broker took the request: its answer may need the controller as well
            question = "are the brokers overloaded, or do they wait for a controller, or for ZooKeeper?"
        return ClusterUnavailable(
            f"no broker of {self.bootstrap_servers} answered within {deadline.timeout_ms} ms "
            f"({'; '.join(obstacles)}); {question}"
        )

    def _refuse_if_closed(self) -> None:
        if self._closed.is_set():
            raise ClientClosed(f"the client of {self.bootstrap_servers} is closed")


@dataclass(slots=True)
class _Asked:
    """One leader's part of a round: the connection is ours from the sending until the reply was read."""

    leaders: Mapping[TopicPartition, KnownLeader]
    endpoint: Endpoint
    connection: BrokerConnection | None = None
    reply: PendingReply | None = None


def _topics_of(topic_partitions: Iterable[TopicPartition]) -> list[str]:
    return list(dict.fromkeys(topic_partition.topic for topic_partition in topic_partitions))


def _by_leader(
    topic_partitions: Iterable[TopicPartition], seen: ClusterMetadata
) -> tuple[dict[BrokerId, dict[TopicPartition, KnownLeader]], dict[TopicPartition, Answer[Any]]]:
    """Partitions with their leaders, by leader; and an error code for each partition without a leader."""
    groups: dict[BrokerId, dict[TopicPartition, KnownLeader]] = {}
    answers: dict[TopicPartition, Answer[Any]] = {}
    for topic_partition in topic_partitions:
        leader = seen.leader(topic_partition)
        if isinstance(leader, KnownLeader):
            groups.setdefault(leader.broker_id, {})[topic_partition] = leader
        else:
            answers[topic_partition] = (leader, None)
    return groups, answers
