"""The rules of transactions fire where a log, an answer or a read is wrong, and nowhere else."""

import uuid
from types import SimpleNamespace

import pytest

from simulation.invariants.invariant import Violation
from simulation.invariants.transaction_replay import Replay
from simulation.invariants.transactions import TakenBatch, TransactionRules
from simulation.marks import Marks
from simulation.truth import Entry, PartitionTruth, TransactionPart
from sparklog.model.ids import TopicPartition
from sparklog.model.transaction_end import TransactionEnd

ID, EPOCH = 7, 2
RECORDS = TransactionPart(is_control=False, has_records=True, end=None)


class Log:
    """A partition's committed log; each batch has one record."""

    def __init__(self, rules, topic="quakes"):
        self.truth = PartitionTruth(TopicPartition(topic, 0), uuid.UUID(int=1))
        self.leader_epoch = 0
        self.parts = {}
        self._rules = rules

    def part(self, entry):
        return self.parts[entry.base_offset]

    def takes(self, part, epoch=EPOCH, sequence=-1):
        at = len(self.truth.committed)
        entry = Entry(at, at + 1, self.leader_epoch, ID, epoch, sequence, 0)
        self.parts[at] = part
        self.truth.committed.append(entry)
        self._rules.on_replica(self.truth, self, SimpleNamespace(is_leader=True), [entry])
        self._rules.on_commit(self.truth, self, [entry])
        return entry

    def takes_records(self, transaction, sequence, epoch=EPOCH):
        self._rules.on_batch(transaction, Entry(0, 1, -1, ID, epoch, sequence, 0))
        return self.takes(RECORDS, epoch, sequence)

    def takes_marker(self, *, is_commit, epoch=EPOCH, coordinator_epoch=0):
        end = TransactionEnd(is_commit, coordinator_epoch)
        return self.takes(TransactionPart(is_control=True, has_records=True, end=end), epoch)


@pytest.fixture
def clock():
    return SimpleNamespace(now_us=0)


@pytest.fixture
def rules(clock):
    return TransactionRules(lambda: clock.now_us, Marks())


@pytest.fixture
def log(rules):
    return Log(rules)


@pytest.fixture
def transaction(rules):
    return rules.begin("one", ID, EPOCH)


def broken(rule):
    return pytest.raises(Violation, match=f"^{rule}: ")


def test_a_transaction_that_ends_everywhere_as_its_producer_wished_breaks_no_rule(rules, log, transaction):
    other = Log(rules, "flights")
    for number, one in enumerate((log, other)):
        rules.on_acknowledged(transaction, one.truth, one.takes_records(transaction, number))
    transaction.wish = "commit"
    log.takes_marker(is_commit=True)
    rules.on_ended(transaction)
    other.takes_marker(is_commit=True)
    other.takes_marker(is_commit=True)  # again: it changes nothing
    rules.check_what_is_owed([log.truth, other.truth])


def test_a_transaction_is_committed_everywhere_or_nowhere(rules, log, transaction):
    other = Log(rules, "flights")
    log.takes_records(transaction, 0)
    other.takes_records(transaction, 1)
    transaction.wish = "commit"
    log.takes_marker(is_commit=True)
    with broken("TransactionsAreAtomic"):
        other.takes_marker(is_commit=False, epoch=EPOCH + 1)


@pytest.mark.parametrize("wish", ["open", "abort"])
def test_nobody_commits_what_its_producer_did_not_want_to_commit(log, transaction, wish):
    log.takes_records(transaction, 0)
    transaction.wish = wish
    with broken("NobodyElseEndsIt"):
        log.takes_marker(is_commit=True)


def test_an_open_transaction_is_aborted_in_another_epoch_only(log, rules):
    first, second = rules.begin("one", ID, EPOCH), rules.begin("two", ID, EPOCH + 1)
    log.takes_records(first, 0)
    log.takes_marker(is_commit=False, epoch=EPOCH + 1)
    log.takes_records(second, 0, epoch=EPOCH + 1)
    with broken("NobodyElseEndsIt"):
        log.takes_marker(is_commit=False, epoch=EPOCH + 1)


def test_a_marker_that_ends_two_transactions_is_found(log, rules):
    for number in range(2):
        transaction = rules.begin(f"transaction {number}", ID, EPOCH)
        transaction.wish = "commit"
        log.takes_records(transaction, number)
    with broken("OneTransactionAMarker"):
        log.takes_marker(is_commit=True)


def test_a_batch_behind_the_marker_of_its_transaction_is_found(log, transaction):
    log.takes_records(transaction, 0)
    transaction.wish = "abort"
    log.takes_marker(is_commit=False)
    with broken("NothingComesBehindTheMarker"):
        log.takes_records(transaction, 1)


def test_a_batch_that_was_appended_after_its_producer_was_replaced_is_found(log, rules, clock, transaction):
    log.takes_records(transaction, 0)
    clock.now_us = 5
    rules.on_initialised(ID, EPOCH + 1)
    clock.now_us = 6
    with broken("FencedProducersWriteNothing"):
        log.takes_records(transaction, 1)


def test_a_committed_transaction_has_every_acknowledged_batch(log, rules, transaction):
    log.takes_records(transaction, 0)
    rules.on_acknowledged(transaction, log.truth, Entry(1, 2, 0, ID, EPOCH, 1, 0))
    transaction.wish = "commit"
    with broken("CommittedTransactionsAreWhole"):
        log.takes_marker(is_commit=True)


def test_an_end_that_was_answered_holds(log, rules, transaction):
    log.takes_records(transaction, 0)
    transaction.wish = "commit"
    rules.on_ended(transaction)
    with broken("AnsweredEndsHold"):
        log.takes_marker(is_commit=False, epoch=EPOCH + 1)


def test_epochs_of_coordinators_do_not_fall(log):
    log.takes_marker(is_commit=True, coordinator_epoch=4)
    with broken("CoordinatorEpochsRise"):
        log.takes_marker(is_commit=True, coordinator_epoch=3)


def test_a_batch_that_nobody_sent_is_found(log):
    with broken("TransactionsAreKnown"):
        log.takes(RECORDS, EPOCH, 0)


def test_an_end_of_an_open_transaction_is_not_refused(log, rules, transaction):
    rules.on_acknowledged(transaction, log.truth, log.takes_records(transaction, 0))
    transaction.wish = "commit"
    with broken("NobodyElseEndsIt"):
        rules.on_end_refused(transaction, "invalid_txn_state")


def test_a_transaction_without_a_marker_hangs(log, rules, transaction):
    rules.on_acknowledged(transaction, log.truth, log.takes_records(transaction, 0))
    with broken("NothingHangs"):
        rules.check_what_is_owed([log.truth])


@pytest.mark.parametrize("topic", ["quakes", "__transaction_state"])
def test_nothing_is_judged_after_an_election_that_may_have_lost_it(log, rules, transaction, topic):
    log.takes_records(transaction, 0)
    rules.on_loss(log.truth if topic == "quakes" else Log(rules, topic).truth)
    log.takes_marker(is_commit=True)
    rules.check_what_is_owed([log.truth])


class TestPipelines:
    """A group's position of 0 to 3 in one transaction, and of more in the next."""

    QUAKES = TopicPartition("quakes", 0)

    @pytest.fixture(autouse=True)
    def _first(self, rules, log):
        self.rules, self.log = rules, log
        self.moves(0, 3)

    def moves(self, start, end, *, wish="commit"):
        number = len(self.log.truth.committed)
        transaction = self.rules.begin(f"transaction {number}", ID, EPOCH)
        self.rules.on_move(transaction, "g", self.QUAKES, start, end)
        self.log.takes_records(transaction, number)
        transaction.wish = wish
        self.log.takes_marker(is_commit=wish == "commit")

    def is_told(self, offset, value, least=3):
        self.rules.on_position("g", self.QUAKES, offset, value, least)

    def test_one_that_goes_on_where_it_was_breaks_no_rule(self):
        self.moves(3, 7)
        self.is_told(7, "transaction 2", least=7)

    def test_one_that_was_aborted_goes_nowhere(self):
        self.moves(3, 7, wish="abort")
        self.is_told(3, "transaction 0")

    @pytest.mark.parametrize("start", [0, 2, 4])
    def test_one_that_does_something_twice_or_leaves_it_out_is_found(self, start):
        with broken("PipelinesAreExactlyOnce"):
            self.moves(start, 7)

    def test_a_position_that_is_not_committed_is_found(self):
        self.moves(3, 7, wish="abort")
        with broken("PositionsAreCommitted"):
            self.is_told(7, "transaction 2")

    @pytest.mark.parametrize(("offset", "value"), [(-1, None), (2, "transaction 0")])
    def test_a_position_that_was_overtaken_is_found(self, offset, value):
        with broken("PositionsStay"):
            self.is_told(offset, value)

    def test_nothing_is_judged_after_an_election_that_may_have_lost_offsets(self):
        self.rules.on_loss(Log(self.rules, "__consumer_offsets").truth)
        self.moves(0, 7)
        self.is_told(-1, None)


class TestReaders:
    """What a read-committed reader is given of an aborted, a committed and an open transaction."""

    @pytest.fixture(autouse=True)
    def _logs(self, rules, log):
        self.rules, self.log = rules, log
        self.batches = []
        for wish in ("abort", "commit", "open"):
            transaction = rules.begin(wish, ID, EPOCH)
            transaction.wish = wish
            self.batches.append(log.takes_records(transaction, len(self.batches)))
            if wish != "open":
                log.takes_marker(is_commit=wish == "commit")

    def reads(self, *kept, start=0, end=4, aborted=((ID, 0),)):
        taken = [
            TakenBatch(entry, is_transactional=True, is_kept=is_kept)
            for entry, is_kept in zip(self.batches[start:], kept, strict=False)
        ]
        self.rules.on_committed_read(self.log.truth, start, end, taken, aborted)

    def test_who_passes_over_the_aborted_one_and_stops_before_the_open_one_breaks_no_rule(self):
        self.reads(False, True)

    def test_who_takes_the_aborted_one_is_found(self):
        with broken("NothingAbortedIsSeen"):
            self.reads(True, True)

    def test_who_passes_over_the_committed_one_is_found(self):
        with broken("EverythingCommittedIsSeen"):
            self.reads(False, False)

    def test_who_is_given_the_open_one_is_found(self):
        with broken("ReadersStopAtTheLastStableOffset"):
            self.reads(False, True, True, end=5)

    @pytest.mark.parametrize("aborted", [(), ((ID, 0), (ID, 2)), ((ID + 1, 0),)])
    def test_a_list_of_aborted_transactions_that_lacks_one_or_has_another_is_found(self, aborted):
        with broken("AbortedListsAreExact"):
            self.reads(False, True, aborted=aborted)

    def test_a_list_may_lack_a_transaction_whose_records_are_all_deleted(self):
        self.log.truth.deleted_end = 1
        for aborted in ((), ((ID, 0),)):
            self.reads(True, start=1, aborted=aborted)

    @pytest.mark.parametrize(("start", "deleted_end"), [(1, 0), (0, 1)])
    def test_a_list_that_lacks_it_while_a_log_may_have_them_is_found(self, start, deleted_end):
        self.log.truth.deleted_end = deleted_end
        kept = (False, True)[start:]
        with broken("AbortedListsAreExact"):
            self.reads(*kept, start=start, aborted=())


def test_a_replay_knows_the_last_stable_offset_at_every_high_watermark():
    replay = Replay()
    marker = TransactionPart(is_control=True, has_records=True, end=TransactionEnd(True, 0))
    for at, (producer, part) in enumerate([(1, None), (2, RECORDS), (3, RECORDS), (2, marker), (3, marker)]):
        replay.take(Entry(at, at + 1, 0, producer, 0, 0, 0), part)
    assert [replay.stable(at) for at in range(6)] == [0, 1, 1, 1, 2, 5]
    assert replay.stable(3, committed_end=5) == 3
