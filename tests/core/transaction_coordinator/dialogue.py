"""A coordinator of transactions in conversation with its clients: each write is taken by the log at once,
unless a test says otherwise.
"""

import uuid

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
from sparklog.core.transaction_coordinator.transaction_machine import TransactionMachine
from sparklog.model.ids import TopicPartition
from tests.core.coordinator.machine_dialogue import MachineDialogue

ID = "payments"
TIMEOUT_MS = 60_000
ORDERS = TransactionTopic("orders", uuid.UUID(int=1), (0, 1))
BILLS = TransactionTopic("bills", uuid.UUID(int=2), (0,))


class Dialogue(MachineDialogue):
    def __init__(self, settings=None, takes=True):
        self.settings = settings or TransactionSettings()
        super().__init__(TransactionMachine(self.settings), takes=takes)
        self.fresh_id = 100
        self.load(())

    @property
    def state(self):
        return self.machine.values[ID].state.label

    def ask(self, request):
        """The answer, or None while the request waits for its write."""
        return self.answers.get(self.submit(request))

    def successor(self):
        """The next coordinator: it knows what is in the log."""
        return self._loaded(lambda other: other.load(self.log))

    def successor_after_loss(self, lost, since=()):
        """The next coordinator: its log lost the last ``lost`` records, and took those of ``since``."""
        kept = self.log[: len(self.log) - lost]
        return self._loaded(lambda other: other.load_after_loss(kept, since))

    def _loaded(self, load):
        other = Dialogue(self.settings, self.takes)
        other.now_ms, other.fresh_id = self.now_ms, self.fresh_id
        load(other)
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

    def verify(self, producer, *numbers, topic_id=None):
        places = tuple(TopicPartition("orders", number) for number in numbers)
        identity = (ID, producer.producer_id, producer.producer_epoch)
        answer = self.ask(
            VerifyPartitions(*identity, places, {} if topic_id is None else {"orders": topic_id})
        )
        return [answer.errors[place].name for place in places]

    def write_markers(self):
        """All markers that were asked for are written."""
        for sent in self.markers:
            self.ask(MarkersWritten(ID, sent.producer_id, sent.producer_epoch, sent.is_commit))
        self.markers.clear()
