"""The committed log of a partition, and the members of atomic writes that write to it."""

import uuid
from types import SimpleNamespace

import pytest

from simulation.invariants.atomic_writes.writes import Attempt, WriteRules
from simulation.invariants.transactions import TransactionRules
from simulation.marks import Marks
from simulation.truth import Entry, PartitionTruth, TransactionPart
from sparklog.model.ids import TopicPartition
from sparklog.model.transaction_end import TransactionEnd
from sparklog.model.write_ids import producer_id_of

RECORDS = TransactionPart(is_control=False, has_records=True, end=None)


class Log:
    """A partition's committed log; each batch has one record."""

    def __init__(self, rules, topic="quakes"):
        self.truth = PartitionTruth(TopicPartition(topic, 0), uuid.UUID(int=1))
        self.parts = {}
        self._rules = rules

    def part(self, entry):
        return self.parts[entry.base_offset]

    def _takes(self, part, producer_id, sequence):
        at = len(self.truth.committed)
        entry = Entry(at, at + 1, 0, producer_id, 0, sequence, 0)
        self.parts[at] = part
        self.truth.committed.append(entry)
        self._rules.on_replica(self.truth, self, SimpleNamespace(is_leader=True), [entry])
        self._rules.on_commit(self.truth, self, [entry])
        return entry

    def takes_rows(self, member):
        """Of a member, which is told so."""
        self._rules.on_batch(member, Entry(0, 1, -1, member.producer_id, 0, 0, 0))
        entry = self._takes(RECORDS, member.producer_id, 0)
        self._rules.on_acknowledged(member, self.truth, entry)
        return entry

    def takes_marker(self, member, *, is_commit):
        end = TransactionEnd(is_commit, 0)
        self._takes(TransactionPart(is_control=True, has_records=True, end=end), member.producer_id, -1)


@pytest.fixture
def clock():
    return SimpleNamespace(now_us=0)


@pytest.fixture
def transactions(clock):
    return TransactionRules(lambda: clock.now_us, Marks())


@pytest.fixture
def write_rules(transactions, clock):
    return WriteRules(transactions, lambda: clock.now_us, Marks(), silence_ms=1_000)


@pytest.fixture
def log_of(transactions):
    """Of another topic."""
    return lambda topic: Log(transactions, topic)


@pytest.fixture
def log(log_of):
    return log_of("quakes")


@pytest.fixture
def joined(write_rules):
    """A member more of a run's write."""

    def join(number, *, version=1, run="run"):
        attempt = Attempt("app", version, run, f"{run} attempt {number}")
        return write_rules.on_member(attempt, producer_id_of(version, number), timeout_ms=3_000, asked_us=0)

    return join
