"""A coordinator of transactions in conversation with its clients: each write is taken by the log at once,
unless a test says otherwise.
"""

import uuid

from sparklog.core.coordinator.actions import Reply, StateRecord, Tell, Token, Write, Written
from sparklog.core.coordinator.state_machine import Now
from sparklog.core.transaction_coordinator.messages import SendMarkers
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.transaction_coordinator.requests import (
    AddPartitions,
    EndTransaction,
    InitProducerId,
    MarkersWritten,
    ProducerIdentity,
    VerifyPartitions,
)
from sparklog.core.transaction_coordinator.settings import TransactionSettings
from sparklog.core.transaction_coordinator.transaction_shard import TransactionShard
from sparklog.model.ids import TopicPartition
from sparklog.model.time import MonotonicMs, WallMs

ID = "payments"
TIMEOUT_MS = 60_000
ORDERS = TransactionTopic("orders", uuid.UUID(int=1), (0, 1))
BILLS = TransactionTopic("bills", uuid.UUID(int=2), (0,))
WALL_MS = 1_000_000


class Dialogue:
    """``takes`` False leaves writes in ``writes``, for the test to say what became of them."""

    def __init__(self, settings=None, takes=True):
        self.settings = settings or TransactionSettings()
        self.machine = TransactionShard(self.settings)
        self.takes = takes
        self.now_ms = 0
        self.tokens = 0
        self.fresh_id = 100
        self.log: list[StateRecord] = []
        self.writes: list[Write] = []
        self.markers: list[SendMarkers] = []
        self.answers: dict[Token, object] = {}
        self.machine.on_loaded(self.now)

    @property
    def now(self):
        return Now(MonotonicMs(self.now_ms), WallMs(WALL_MS + self.now_ms))

    @property
    def state(self):
        return self.machine.values[ID].state.label

    def ask(self, request):
        """The answer, or None while the request waits for its write."""
        self.tokens += 1
        token = Token(self.tokens)
        self._carry_out(self.machine.on_request(token, request, self.now))
        return self.answers.get(token)

    def become(self, write, outcome=None):
        outcome = outcome or Written()
        if isinstance(outcome, Written):
            self.log.extend(write.records)
        self._carry_out(self.machine.on_written(write.write_id, outcome, self.now))

    def pass_time(self, span_ms):
        self.now_ms += span_ms
        self._carry_out(self.machine.on_time(self.now))

    def _carry_out(self, actions):
        self.machine.check_invariants()
        for action in actions:
            match action:
                case Reply(token, response):
                    assert token not in self.answers
                    self.answers[token] = response
                case Tell(message):
                    self.markers.append(message)
                case Write() if self.takes:
                    self.become(action)
                case Write():
                    self.writes.append(action)

    def successor(self):
        """The next coordinator: it knows what is in the log."""
        other = Dialogue(self.settings, self.takes)
        other.now_ms = self.now_ms
        for record in self.log:
            other.machine.replay(record)
        other._carry_out(other.machine.on_loaded(other.now))
        other.log = list(self.log)
        return other

    # What clients do

    def init(self, timeout_ms=TIMEOUT_MS, expected=None):
        request = InitProducerId(ID, timeout_ms, expected)
        answer = self.ask(request)
        if answer is not None and answer.needs_producer_id:
            self.fresh_id += 1
            answer = self.ask(InitProducerId(ID, timeout_ms, expected, self.fresh_id))
        return answer

    def producer(self):
        """A fresh producer of the transactional id: its identity."""
        answer = self.init()
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def add(self, producer, *topics):
        answer = self.ask(
            AddPartitions(ID, producer.producer_id, producer.producer_epoch, topics or (ORDERS,))
        )
        return None if answer is None else answer.error.name

    def end(self, producer, is_commit):
        answer = self.ask(EndTransaction(ID, producer.producer_id, producer.producer_epoch, is_commit))
        return None if answer is None else answer.error.name

    def commit(self, producer):
        return self.end(producer, is_commit=True)

    def abort(self, producer):
        return self.end(producer, is_commit=False)

    def verify(self, producer, *numbers):
        places = tuple(TopicPartition("orders", number) for number in numbers)
        answer = self.ask(VerifyPartitions(ID, producer.producer_id, producer.producer_epoch, places))
        return [answer.errors[place].name for place in places]

    def write_markers(self):
        """All markers that were asked for are written."""
        for sent in self.markers:
            self.ask(MarkersWritten(ID, sent.producer_id, sent.producer_epoch, sent.is_commit))
        self.markers.clear()
