"""Rules of what teams do and are answered, by the rules that the answering process goes by at that moment.

AppendsAreAllowed      a leader appends a team's batch only if the team may write
DeniedIsNowhere        what was refused for want of a right is in no log
ReadersMayRead         an answer has records only if its reader may read when it leaves
NamesAreShownToSome    an answer shows a topic only to who may describe it
DenialsHaveAReason     who is refused lacks the right
"""

from collections.abc import Callable
from typing import Final

from simulation.invariants.access.rule_stores import RuleStores
from simulation.invariants.invariant import Invariant, Violation
from simulation.plans.principals import TEAM_TOPICS, TEAMS
from simulation.schedule import US_PER_MS, Process
from simulation.truth import Entry, PartitionTruth, ReplicaView
from sparklog.broker.partition.partition import Partition
from sparklog.core.security.acl import AclOperation
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicId
from sparklog.model.parts import Part, read_parts
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.wire.codec import decode_response
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.data.fetch import FetchResponse
from sparklog.wire.messages.data.produce import ProduceResponse
from sparklog.wire.messages.discovery.metadata import MetadataResponse
from sparklog.wire.versions import KNOWN_VERSIONS

OF_TEAMS: Final = frozenset(f"User:{team}" for team in TEAMS)
WATCHED: Final = frozenset({ProduceResponse.API_KEY, FetchResponse.API_KEY, MetadataResponse.API_KEY})
DENIED: Final = ErrorCode.topic_authorization_failed


class Rights(Invariant):
    """``topic_name``: of the topic with this id, if there is one."""

    def __init__(
        self,
        stores: RuleStores,
        topic_name: Callable[[TopicId], str | None],
        reach: Callable[[str], None],
    ) -> None:
        self.is_silent = False
        self._stores = stores
        self._topic_name = topic_name
        self._reach = reach
        self._sent: dict[int, tuple[str, str]] = {}
        """Who sent the batch with this CRC: principal and address."""
        self._denied: set[int] = set()
        self._appended: set[int] = set()

    # -- writes

    def sends(self, crc: int, principal: str, host: str) -> None:
        self._sent[crc] = principal, host

    def is_denied(self, crc: int) -> None:
        """Its sender was told so, and had sent it once."""
        self._denied.add(crc)
        self._reach("a write was denied")
        if crc in self._appended:
            raise self._is_there(crc)

    def on_replica(
        self, truth: PartitionTruth, view: ReplicaView, partition: Partition, added: list[Entry]
    ) -> None:
        topic = truth.topic_partition.topic
        if topic not in TEAM_TOPICS:
            return
        for entry in added:
            if entry.crc not in self._appended:
                self._appended.add(entry.crc)
                self._check_append(topic, partition, entry)

    def _check_append(self, topic: str, partition: Partition, entry: Entry) -> None:
        if entry.crc in self._denied:
            raise self._is_there(entry.crc)
        sender = self._sent.get(entry.crc)
        process = self._stores.holder(partition)
        if sender is None or process is None or not partition.is_leader:
            return
        if entry.leader_epoch != partition.leader_epoch:
            return
        if not self._stores.allows(process, *sender, AclOperation.write, topic):
            what = f"{process.name} has appended {entry} of {sender[0]} to {topic}, who may not write"
            raise Violation("AppendsAreAllowed", what)

    def _is_there(self, crc: int) -> Violation:
        principal, host = self._sent[crc]
        return Violation("DeniedIsNowhere", f"a batch that {host} ({principal}) may not write is in a log")

    # -- answers

    def on_answer(self, process: Process, exchange: Exchange, parts: list[Part]) -> None:
        """A broker is about to answer."""
        key, context = exchange.api_key, exchange.context
        if self.is_silent or key not in WATCHED or context.principal not in OF_TEAMS or not parts:
            return
        frame = memoryview(read_parts(parts))[FRAME_PREFIX.size :]
        _, response = decode_response(key, KNOWN_VERSIONS[key].max, frame)
        match response:
            case ProduceResponse():
                for produced in response.responses:
                    if any(one.error_code is DENIED for one in produced.partition_responses):
                        self._must_lack(process, context, AclOperation.write, produced.name)
            case FetchResponse():
                self._look_at_fetch(process, context, response)
            case MetadataResponse():
                for shown in response.topics:
                    self._look_at_topic(process, context, shown.name or "", shown.error_code)

    def _look_at_fetch(self, process: Process, context: RequestContext, response: FetchResponse) -> None:
        for fetched in response.responses:
            name = self._topic_name(fetched.topic_id)
            if name not in TEAM_TOPICS:
                continue
            who = context.principal, context.client_host
            may_read = self._stores.allows(process, *who, AclOperation.read, name)
            for data in fetched.partitions:
                if data.error_code is DENIED:
                    self._must_lack(process, context, AclOperation.read, name)
                    self._reach("a read was denied")
                elif data.records and not may_read:
                    what = f"{process.name} gives records of {name} to {who[1]}, who is {who[0]}"
                    raise Violation("ReadersMayRead", what)

    def _look_at_topic(self, process: Process, context: RequestContext, name: str, error: ErrorCode) -> None:
        if error is DENIED:
            self._must_lack(process, context, AclOperation.describe, name)
        elif error is ErrorCode.none and True not in self._said(
            process, context, AclOperation.describe, name
        ):
            what = f"{process.name} shows {name} to {context.client_host}, who is {context.principal}"
            raise Violation("NamesAreShownToSome", what)

    def _must_lack(
        self, process: Process, context: RequestContext, operation: AclOperation, topic: str
    ) -> None:
        if False not in self._said(process, context, operation, topic):
            what = f"{process.name} denies {context.principal} at {context.client_host} {operation.name} "
            raise Violation("DenialsHaveAReason", f"{what}on {topic}, who may do that")

    def _said(
        self, process: Process, context: RequestContext, operation: AclOperation, topic: str
    ) -> set[bool]:
        return self._stores.said(
            process,
            context.principal,
            context.client_host,
            operation,
            topic,
            since_us=context.received_ms * US_PER_MS,
        )
