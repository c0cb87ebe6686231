"""Consume, transform, produce: a producer that commits its position with what it writes (KIP-98).

    position of the group -> records -> AddOffsetsToTxn -> TxnOffsetCommit -> EndTxn -> records ...

It reads nothing: its input are numbers, and a position is the next one. After a start, and whenever it cannot
know what became of its last transaction, it asks the group's coordinator for the position.
"""

from collections.abc import Generator, Iterable
from typing import Any, Final

from simulation.clients.client import RETRY_MS, Workplace
from simulation.clients.groups.offsets import fetch_request, fetched_in
from simulation.clients.transactions.producer import MOVED, TransactionalProducer
from simulation.clients.transactions.script import Ask, FencedError, GaveUpError, Script, Wait
from simulation.clients.transactions.sender import FENCED
from simulation.invariants.transactions import Transaction, TransactionRules
from simulation.plans.transactions import TransactionPlan
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.discovery.find_coordinator import GROUP_KEY
from sparklog.wire.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from sparklog.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

STEP_MAX: Final = 5
"""How many numbers a transaction takes at most."""

AGAIN: Final = frozenset({*MOVED, ErrorCode.request_timed_out, ErrorCode.not_enough_replicas})


class Pipeline(TransactionalProducer):
    def __init__(
        self,
        place: Workplace,
        name: str,
        life: int,
        plan: TransactionPlan,
        rules: TransactionRules,
        partitions: Iterable[TopicPartition],
    ) -> None:
        super().__init__(place, name, life, plan, rules, partitions)
        self.group_id = f"group of {name}"
        self._input = self._partitions[0]
        self._position: int | None = None
        """Where it goes on; None: the group's coordinator must be asked."""
        self._started_at = 0
        self._group_host: str | None = None

    def _transact(self) -> Script:
        if self._position is None:
            yield from self._fetch()
        assert self._position is not None
        before, self._position = self._position, None
        self._started_at = before
        yield from super()._transact()
        last = self._last
        if last is not None and last.is_answered and last.position is not None:
            self._position = last.position.end if last.wish == "commit" else before

    def _write(self, transaction: Transaction) -> Script:
        yield from super()._write(transaction)
        yield from self._commit_position(transaction)

    def _ask_group(self, request: Any, errors_in: Any) -> Generator[Ask | Wait, Any, Any]:
        """The response of the group's coordinator, once there is one without a passing trouble.

        Raises:
            FencedError: this producer is not the last one.
            GaveUpError: there is none, for too long.
        """
        for _ in range(20):
            if self._group_host is None:
                self._group_host = yield from self.find(self.group_id, GROUP_KEY)
            response = yield from self.ask(self._group_host, request)
            errors = set() if response is None else errors_in(response)
            if errors & FENCED:
                raise FencedError
            if response is not None and not errors & AGAIN:
                return response
            self._group_host = None
            yield Wait(RETRY_MS)
        raise GaveUpError

    def _fetch(self) -> Script:
        """Where the group is. An offset that is not decided yet is waited for."""
        request = fetch_request(self.group_id, [self._input])
        while self._position is None:
            least = self._rules.position_of(self.group_id, self._input)
            try:
                response = yield from self._ask_group(
                    request, lambda response: {fetched_in(response).error} - {ErrorCode.none}
                )
            except GaveUpError:
                continue
            found = fetched_in(response).offsets.get(self._input)
            if found is None:
                self._place.witness.marks.reach("a position was not decided yet")
                yield Wait(RETRY_MS)
                continue
            self._rules.on_position(self.group_id, self._input, found.offset, found.value, least)
            self._position = max(found.offset, 0)
            self.tell(f"goes on at {self._position}, says {found.value}")

    def _commit_position(self, transaction: Transaction) -> Script:
        producer_id, epoch = self._producer
        addition = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=self.group_id,
        )
        response = yield from self._ask_coordinator(addition, lambda response: response.error_code)
        if response.error_code is not ErrorCode.none:
            raise GaveUpError
        start = self._started_at
        end = start + self._draw.randint(1, STEP_MAX)
        self._rules.on_move(transaction, self.group_id, self._input, start, end)
        offset = TxnOffsetCommitRequestPartition(
            partition_index=self._input.partition,
            committed_offset=end,
            committed_metadata=transaction.name,
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=self.group_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[TxnOffsetCommitRequestTopic(name=self._input.topic, partitions=[offset])],
        )
        response = yield from self._ask_group(request, _errors_of_commit)
        if _errors_of_commit(response):
            raise GaveUpError
        self.tell(f"moves from {start} to {end} in {transaction.name}")


def _errors_of_commit(response: Any) -> set[ErrorCode]:
    return {one.error_code for topic in response.topics for one in topic.partitions} - {ErrorCode.none}
