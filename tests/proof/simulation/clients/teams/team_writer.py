"""Producers of a team. They go on writing while they may not, and know what was refused for that."""

from typing import Any, Final

from simulation.clients.client import Workplace
from simulation.clients.plain_producers import PlainProducer
from simulation.clients.teams.team_lookups import TeamLookups
from simulation.invariants.access.rights import DENIED, Rights
from simulation.machines.network import Call
from simulation.plans.principals import principal_of
from simulation.recorder import SentBatch
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.records.envelope import parse_header
from sparklog.wire.messages.data.produce import ProduceResponse

DEFINITE: Final = (ErrorCode.none, DENIED)


class TeamWriter(TeamLookups, PlainProducer):
    """Each batch is sent once, unless the network repeats it."""

    def __init__(
        self,
        place: Workplace,
        name: str,
        topic_partition: TopicPartition,
        rights: Rights,
        *,
        acks: int,
        interval_ms: float,
    ) -> None:
        super().__init__(place, name, topic_partition, acks=acks, interval_ms=interval_ms)
        self.principal = principal_of(name)
        self.last_word: ErrorCode | None = None
        """Its last answer, if that says whether it may write."""
        self._rights = rights
        self._last_call: Call | None = None
        self._calls: dict[int, Call | None] = {}
        """By the CRC of what was sent, until it is answered."""

    def send_once(self) -> None:
        """One more batch, as soon as it knows where to."""
        if self._leader is None:
            self.find_leader()
        else:
            self._produce(self._leader)

    def call(self, host: str, message: Any, on_response: Any, on_failure: Any) -> Call | None:
        self._last_call = super().call(host, message, on_response, on_failure)
        return self._last_call

    def _batch(self) -> bytes:
        batch = super()._batch()
        self._rights.sends(parse_header(batch).crc, self.principal, self.name)
        return batch

    def _produce(self, leader: str) -> None:
        self._last_call = None
        super()._produce(leader)
        self._calls[self._place.recorder.sent[-1].entry.crc] = self._last_call

    def _answered(self, record: SentBatch, response: ProduceResponse) -> None:
        error, crc = response.responses[0].partition_responses[0].error_code, record.entry.crc
        call = self._calls.pop(crc, None)
        self.last_word = error if error in DEFINITE else None
        if error is not DENIED:
            super()._answered(record, response)
            return
        self.waiting -= 1
        was_sent_once = call is not None and not call.is_repeated
        self._place.recorder.end(record, "fail" if was_sent_once else "info", error=error.name)
        if was_sent_once:
            self._rights.is_denied(crc)
