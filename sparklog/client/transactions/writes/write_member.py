"""A member of an atomic write: one task attempt, from its first partition to its last word.

    open --> add, add, ... (before the first batch of each partition) --> finish, once all is acknowledged
                                                                      \\-> withdraw, if the attempt fails

The coordinator aborts a member that is silent for 30 s, so a thread speaks every five. What it hears is
reported by the next call of the member's own thread.
"""

import logging
import threading
from collections.abc import Iterable
from typing import Final

from sparklog.client.cluster import ClusterClient
from sparklog.client.transactions.writes.failed_writes import AlreadyCommitted, WriteFailed
from sparklog.client.transactions.writes.write_coordinator import WriteCoordinator, check_served, is_open_over
from sparklog.client.transactions.writes.write_identity import WriteIdentity
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.model.write_ids import MEMBERS_MAX
from sparklog.model.write_outcomes import MemberState, OpenOutcome
from sparklog.wire.messages.writes.open_write import OpenWriteRequest, OpenWriteResponse, OpenWriteTopic

SIGN_OF_LIFE_S: Final = 5.0
WITHDRAW_TIMEOUT_MS: Final = 5_000
NO_PRODUCER_ID: Final = -1

logger: Final = logging.getLogger(__name__)


class WriteMember:
    """See the module. ``attempt`` is unique in the write's run. ``timeout_ms`` bounds each call.

    Its methods are for one thread; ``close`` ends the thread that gives signs of life.
    """

    def __init__(
        self,
        cluster: ClusterClient,
        write: WriteIdentity,
        attempt: str,
        *,
        timeout_ms: int,
        sign_of_life_s: float = SIGN_OF_LIFE_S,
    ) -> None:
        self.write: Final = write
        self.producer_id = NO_PRODUCER_ID
        self._attempt = attempt
        self._cluster = cluster
        self._timeout_ms = timeout_ms
        self._coordinator = WriteCoordinator(cluster, write)
        self._partitions: set[TopicPartition] = set()
        self._lock = threading.Lock()
        """Held during a call: the coordinator's is for one thread, and calls must not overtake each other."""
        self._is_over = threading.Event()
        self._failure: SparklogError | None = None
        self._thread = threading.Thread(
            target=self._live, args=(sign_of_life_s,), name="sparklog-write-member", daemon=True
        )

    def open(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Become a member. Raises AlreadyCommitted, or WriteFailed if the write cannot be joined."""
        check_served(self._cluster)
        self._partitions.update(topic_partitions)
        try:
            self.producer_id = self._say(self._partitions, MemberState.WORKING).producer_id
        except KafkaError as error:
            if error.code is not ErrorCode.coordinator_not_available:
                raise
            raise WriteFailed(
                f"{self.write} is not written: the brokers at {self._cluster.bootstrap_servers} had no "
                f"coordinator for it within {self._timeout_ms} ms. Their topic {TRANSACTION_STATE_TOPIC} has "
                "no leader, or cannot be created, which takes transaction.state.log.replication.factor "
                "brokers; their logs have the reason. Start the missing brokers, or write with option "
                "delivery=at-least-once"
            ) from error
        self._thread.start()

    def add(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Register partitions before anything is sent to them; those that are registered cost nothing."""
        added = set(topic_partitions) - self._partitions
        if added:
            self._say(added, MemberState.WORKING)
            self._partitions |= added

    def finish(self) -> None:
        """All batches are acknowledged: from now on the member may win. Its last call."""
        self._say((), MemberState.FINISHED)
        self.close()

    def withdraw(self) -> None:
        """The attempt has failed: have its rows aborted now. If the call is lost, silence does the same."""
        self._is_over.set()
        if self.producer_id == NO_PRODUCER_ID or self._failure is not None:
            return
        try:
            self._say((), MemberState.ABORTED, timeout_ms=WITHDRAW_TIMEOUT_MS)
        except SparklogError as error:
            logger.warning(
                "%s: a failed task could not withdraw its rows; they are aborted soon: %s", self.write, error
            )

    def close(self) -> None:
        """End the signs of life."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _live(self, pause_s: float) -> None:
        while not self._is_over.wait(pause_s):
            try:
                self._say((), MemberState.WORKING)
            except (AlreadyCommitted, WriteFailed) as error:
                self._failure = error
                return
            except SparklogError as error:
                # The coordinator may be away for longer than one call lasts.
                logger.info("%s: no answer to a sign of life: %s", self.write, error)

    def _say(
        self, topic_partitions: Iterable[TopicPartition], state: MemberState, *, timeout_ms: int | None = None
    ) -> OpenWriteResponse:
        if self._failure is not None:
            raise self._failure
        deadline = self._cluster.deadline(timeout_ms or self._timeout_ms)
        with self._lock:
            if state is MemberState.WORKING and self._is_over.is_set():
                return OpenWriteResponse(producer_id=self.producer_id)
            request = OpenWriteRequest(
                app_id=self.write.app_id,
                app_version=self.write.version,
                run=self.write.run,
                attempt=self._attempt,
                timeout_ms=self.write.timeout_ms,
                is_plain=self.write.is_plain,
                state=state,
                producer_id=self.producer_id,
                topics=_topics(topic_partitions),
            )
            response: OpenWriteResponse = self._coordinator.call(request, deadline, is_open_over)
        if response.outcome == OpenOutcome.ALREADY_COMMITTED:
            raise AlreadyCommitted(f"{self.write}: version {response.app_version} is committed")
        if response.outcome != OpenOutcome.MEMBER:
            raise WriteFailed(_reason(self.write, response, self._timeout_ms))
        return response


def _reason(write: WriteIdentity, response: OpenWriteResponse, timeout_ms: int) -> str:
    match response.outcome:
        case OpenOutcome.OLDER_VERSION:
            return f"{write} is not written: version {response.app_version} is being written already"
        case OpenOutcome.BEING_ENDED:
            return (
                f"{write} is not written: the end of the write before it was not carried out within "
                f"{timeout_ms} ms; is a partition of its topics without a leader?"
            )
        case OpenOutcome.MEMBER_ENDED:
            return (
                f"{write}: this task was taken for dead, or its write has ended; nothing that it wrote will "
                "be visible. Run it again"
            )
        case OpenOutcome.TOO_MANY_MEMBERS:
            return (
                f"{write} has no producer id left for another task attempt: it had {MEMBERS_MAX:,} attempts, "
                "or its coordinator moved dozens of times; run it again, or write in several parts"
            )
    return f"{write}: outcome {response.outcome}, which this release does not know"


def _topics(topic_partitions: Iterable[TopicPartition]) -> list[OpenWriteTopic]:
    topics: dict[str, OpenWriteTopic] = {}
    for name, number in sorted(topic_partitions):
        topics.setdefault(name, OpenWriteTopic(name=name)).partitions.append(number)
    return list(topics.values())
