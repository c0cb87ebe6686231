"""The table of states and facts, row by row; who mends what; and what a coordinator's successor makes of the
log.
"""

import uuid
from dataclasses import replace

import pytest

from sparklog.core.coordinator.actions import InDoubt, Refused
from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.transaction_coordinator.requests import MarkersWritten
from sparklog.core.write_coordinator.ending import RUNS_MAX
from sparklog.core.write_coordinator.records import Head, HeadKey, MemberKey
from sparklog.core.write_coordinator.requests import EndWrite, OpenWrite
from sparklog.core.write_coordinator.responses import NO_PRODUCER_ID
from sparklog.core.write_coordinator.settings import WriteSettings
from sparklog.core.write_coordinator.write_machine import DELETIONS_KEPT_MS, WriteMachine
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import NamedTopic
from sparklog.model.write_ids import (
    FIRST_PRODUCER_ID,
    LOST_MEMBERS_MAX,
    MEMBER_NUMBERS,
    WRITE_NUMBER_MAX,
    producer_id_of,
    write_and_member,
)
from sparklog.model.write_outcomes import MemberState
from tests.core.write_coordinator.dialogue import (
    APP,
    BILLS,
    ORDERS,
    SILENCE_MS,
    TIMEOUT_MS,
    Dialogue,
)

FINISHED, WITHDRAWN, WORKING = MemberState.FINISHED, MemberState.ABORTED, MemberState.WORKING
DAY_MS = 86_400_000


# Ids


def test_a_producer_id_says_whose_it_is_up_to_the_last_write():
    for ids in [(0, 0), (1, 1), (WRITE_NUMBER_MAX, 99_999)]:
        producer_id = producer_id_of(*ids)
        assert write_and_member(producer_id) == ids
        assert FIRST_PRODUCER_ID <= producer_id < 2**63


# Idle


def test_the_first_attempt_opens_the_write_and_becomes_its_first_member():
    dialogue = Dialogue()
    assert dialogue.member() == producer_id_of(101, 0)
    assert dialogue.state == ("open", -1)


@pytest.mark.parametrize("version", [0, 1])
def test_an_idle_app_calls_what_is_not_above_its_version_already_committed(version):
    dialogue = Dialogue()
    dialogue.committed(version=1)
    answer = dialogue.open(version)
    assert (answer.outcome.name, answer.version) == ("ALREADY_COMMITTED", 1)
    assert dialogue.commit(7, version=version) == "ALREADY_COMMITTED"
    assert dialogue.abort(version=version) == "ALREADY_COMMITTED"


def test_the_next_version_is_a_write_with_a_number_of_its_own():
    dialogue = Dialogue()
    first = dialogue.committed(version=1)
    second = dialogue.committed(version=2)
    assert write_and_member(first) == (101, 0)
    assert write_and_member(second) == (102, 0)
    assert dialogue.state == ("idle", 2)


def test_a_commit_of_a_write_that_is_not_open_says_so():
    assert Dialogue().commit(producer_id_of(5, 0)) == "NOT_OPEN"
    dialogue = Dialogue()
    dialogue.committed(version=1)
    assert dialogue.commit(producer_id_of(5, 0), version=2) == "NOT_OPEN"


def test_there_is_nothing_to_abort_where_nothing_is_open():
    assert Dialogue().abort() == "ABORTED"


def test_a_version_without_rows_is_committed_and_is_then_already_committed():
    dialogue = Dialogue()
    assert dialogue.commit(version=3) == "COMMITTED"
    assert dialogue.open(3).outcome.name == "ALREADY_COMMITTED"
    assert dialogue.successor().open(3).outcome.name == "ALREADY_COMMITTED"


# Open


def test_every_attempt_of_whatever_run_becomes_a_member():
    dialogue = Dialogue()
    members = [dialogue.member(attempt=attempt, run=run) for attempt in "ab" for run in ("one", "two")]
    assert [write_and_member(member) for member in members] == [(101, n) for n in range(4)]


def test_an_attempt_that_asks_again_is_answered_the_same_without_a_record():
    dialogue = Dialogue()
    producer_id = dialogue.member()
    records = len(dialogue.log)
    assert dialogue.member() == producer_id
    assert dialogue.says(producer_id, WORKING) == "MEMBER"
    assert len(dialogue.log) == records


def test_a_later_version_has_the_open_one_aborted_first():
    dialogue = Dialogue()
    old = dialogue.finished(version=1)
    assert dialogue.open(2).outcome.name == "BEING_ENDED"
    assert dialogue.ends == {(101, 0): "aborted"}
    assert dialogue.open(2).outcome.name == "BEING_ENDED"
    dialogue.write_markers()
    assert dialogue.state == ("idle", -1)
    assert write_and_member(dialogue.member(version=2)) == (102, 0)
    assert dialogue.commit(old, version=1) == "OLDER_VERSION"


@pytest.mark.parametrize("named", [{"producer_id": 2**62 + 5}, {"state": MemberState.FINISHED}])
def test_an_attempt_that_cannot_join_a_later_version_leaves_the_open_one_alone(named):
    """It was a member of that version once, and is over: nothing begins with it."""
    dialogue = Dialogue()
    owner = dialogue.finished(version=1)
    assert dialogue.open(2, **named).outcome.name == "MEMBER_ENDED"
    assert dialogue.ends == {}
    assert dialogue.commit(owner, version=1) != "OLDER_VERSION"
    assert dialogue.ends == {(101, 0): "committed"}


def test_an_earlier_version_than_the_open_one_is_told():
    dialogue = Dialogue()
    dialogue.member(version=2)
    answer = dialogue.open(1)
    assert (answer.outcome.name, answer.version) == ("OLDER_VERSION", 2)
    assert dialogue.abort(version=1) == "OLDER_VERSION"


def test_a_silent_member_alone_is_aborted_and_cannot_come_back():
    dialogue = Dialogue()
    silent = dialogue.member(attempt="silent")
    done = dialogue.finished(attempt="done")
    loud = dialogue.member(attempt="loud")
    dialogue.pass_time(SILENCE_MS - 1)
    assert dialogue.says(loud, WORKING, attempt="loud") == "MEMBER"
    dialogue.pass_time(1)
    assert dialogue.ends == {write_and_member(silent): "aborted"}
    assert dialogue.says(silent, WORKING, attempt="silent") == "MEMBER_ENDED"
    assert dialogue.open(attempt="silent").outcome.name == "MEMBER_ENDED"
    assert dialogue.says(loud, FINISHED, attempt="loud") == "MEMBER"
    assert dialogue.commit(silent) == "LOST_MEMBER"
    dialogue.write_markers()
    token = dialogue.commit(done, loud)
    dialogue.write_markers()
    assert dialogue.answers[token].outcome.name == "COMMITTED"
    assert dialogue.ends == {
        write_and_member(silent): "aborted",
        write_and_member(done): "committed",
        write_and_member(loud): "committed",
    }


def test_a_finished_member_is_not_aborted_for_its_silence():
    dialogue = Dialogue()
    producer_id = dialogue.finished()
    dialogue.pass_time(TIMEOUT_MS - 1)
    assert dialogue.ends == {}
    assert isinstance(dialogue.commit(producer_id), int)


def test_a_write_without_any_sign_of_life_is_aborted_and_its_commit_says_so():
    dialogue = Dialogue()
    producer_id = dialogue.finished()
    dialogue.pass_time(TIMEOUT_MS)
    dialogue.write_markers()
    assert dialogue.ends == {(101, 0): "aborted"}
    assert dialogue.state == ("idle", -1)
    assert dialogue.commit(producer_id) == "NOT_OPEN"


def test_the_abort_of_a_silent_member_is_no_sign_of_life():
    dialogue = Dialogue()
    dialogue.member()
    dialogue.pass_time(SILENCE_MS)
    dialogue.pass_time(TIMEOUT_MS - SILENCE_MS)
    dialogue.write_markers()
    assert dialogue.state == ("idle", -1)


def test_a_commit_is_answered_when_all_markers_are_written_and_losers_are_aborted():
    dialogue = Dialogue()
    winner = dialogue.finished(attempt="a")
    twin = dialogue.finished(attempt="its twin")
    late = dialogue.member(attempt="late")
    token = dialogue.commit(winner)
    assert dialogue.state == ("prepared_commit", -1)
    assert token not in dialogue.answers
    dialogue.write_markers()
    assert dialogue.answers[token].outcome.name == "COMMITTED"
    assert dialogue.state == ("idle", 1)
    assert dialogue.ends == {
        write_and_member(winner): "committed",
        write_and_member(twin): "aborted",
        write_and_member(late): "aborted",
    }


def test_no_marker_leaves_before_the_decision_is_in_the_log():
    dialogue = Dialogue()
    winner = dialogue.finished()
    dialogue.takes = False
    dialogue.commit(winner)
    [prepared] = dialogue.writes
    assert prepared.records[0].value.winners == {0}
    assert dialogue.sent == []
    dialogue.become(prepared)
    assert len(dialogue.sent) == 1


@pytest.mark.parametrize("ghost", ["unknown", "of another write", "working"])
def test_a_winner_that_is_no_finished_member_fails_the_commit_and_changes_nothing(ghost):
    dialogue = Dialogue()
    good = dialogue.finished()
    bad = {
        "unknown": producer_id_of(101, 9),
        "of another write": producer_id_of(100, 0),
        "working": dialogue.member(attempt="b"),
    }[ghost]
    assert dialogue.commit(good, bad) == "LOST_MEMBER"
    assert dialogue.state == ("open", -1)
    assert isinstance(dialogue.commit(good), int)


def test_the_abort_of_a_run_ends_its_members_alone():
    dialogue = Dialogue()
    old = dialogue.finished(run="old")
    new = dialogue.finished(run="new")
    assert dialogue.abort(run="old") == "ABORTED"
    assert dialogue.ends == {write_and_member(old): "aborted"}
    assert dialogue.open(run="old", attempt="late").outcome.name == "MEMBER_ENDED"
    assert dialogue.abort(run="old") == "ABORTED"
    assert isinstance(dialogue.commit(new, run="new"), int)


def test_the_abort_of_the_last_run_frees_the_app():
    dialogue = Dialogue()
    dialogue.member(run="old")
    dialogue.member(run="new")
    assert dialogue.abort(run="old") == "ABORTED"
    assert dialogue.abort(run="new") == "ABORTED"
    assert dialogue.state == ("prepared_abort", -1)
    dialogue.write_markers()
    assert dialogue.state == ("idle", -1)
    assert write_and_member(dialogue.member(run="newest")) == (102, 0)


def test_a_task_that_begins_after_its_run_was_aborted_opens_no_write():
    """The job failed while the task's process started: nobody commits or aborts what it would write."""
    for began in (lambda dialogue: None, lambda dialogue: dialogue.finished(attempt="quick")):
        dialogue = Dialogue()
        began(dialogue)
        assert dialogue.abort() == "ABORTED"
        dialogue.write_markers()
        assert dialogue.state == ("idle", -1)
        for coordinator in (dialogue, dialogue.successor()):
            assert coordinator.open(attempt="late").outcome.name == "MEMBER_ENDED"
            assert coordinator.state == ("idle", -1)
        dialogue.member(run="next")
        assert dialogue.open(attempt="later").outcome.name == "MEMBER_ENDED"


def test_an_aborted_run_is_forgotten_with_its_version():
    dialogue = Dialogue()
    assert dialogue.abort(version=1) == "ABORTED"
    assert isinstance(dialogue.commit(dialogue.finished(version=1, run="next"), run="next"), int)
    dialogue.write_markers()
    assert dialogue.head.aborted_runs == ()
    assert dialogue.abort(version=2) == "ABORTED"
    assert dialogue.abort(version=3, run="other") == "ABORTED"
    assert (dialogue.head.version, dialogue.head.aborted_runs) == (3, ("other",))
    assert dialogue.state == ("idle", 1)
    dialogue.member(version=3)


def test_an_abort_twice_is_one_record_and_only_the_latest_runs_are_remembered():
    dialogue = Dialogue()
    for number in range(RUNS_MAX + 1):
        dialogue.abort(run=str(number))
    assert len(dialogue.head.aborted_runs) == RUNS_MAX
    records = len(dialogue.log)
    assert dialogue.abort(run=str(RUNS_MAX)) == "ABORTED"
    assert dialogue.abort(version=0) == "ABORTED"
    assert len(dialogue.log) == records


def test_a_member_that_withdraws_is_aborted_at_once():
    dialogue = Dialogue()
    producer_id = dialogue.member()
    assert dialogue.says(producer_id, WITHDRAWN) == "MEMBER"
    assert dialogue.ends == {(101, 0): "aborted"}
    assert dialogue.says(producer_id, WORKING) == "MEMBER_ENDED"


def test_a_member_of_an_ended_write_is_told_even_if_its_version_is_written_again():
    dialogue = Dialogue()
    zombie = dialogue.member(attempt="zombie")
    dialogue.abort()
    dialogue.write_markers()
    assert dialogue.says(zombie, WORKING, attempt="zombie") == "MEMBER_ENDED"
    dialogue.member(attempt="fresh", run="next")
    assert dialogue.says(zombie, WORKING, attempt="zombie") == "MEMBER_ENDED"
    assert dialogue.says(zombie, FINISHED, attempt="zombie") == "MEMBER_ENDED"


def test_partitions_are_added_by_later_calls_but_not_after_the_last():
    dialogue = Dialogue()
    producer_id = dialogue.member(topics=(ORDERS,))
    assert dialogue.open(producer_id=producer_id, topics=(BILLS,)).error is ErrorCode.none
    dialogue.says(producer_id, FINISHED)
    more = TransactionTopic("orders", ORDERS.topic_id, (7,))
    assert dialogue.open(producer_id=producer_id, topics=(more,)).error is ErrorCode.invalid_request
    dialogue.commit(producer_id)
    assert [topic.name for topic in dialogue.sent[0].topics] == ["bills", "orders"]


def test_a_sign_of_life_that_was_overtaken_does_not_undo_the_end_of_a_member():
    dialogue = Dialogue()
    producer_id = dialogue.finished()
    assert dialogue.says(producer_id, WORKING) == "MEMBER"
    assert isinstance(dialogue.commit(producer_id), int)


def test_a_deleted_topic_fails_the_commit_by_its_name_and_aborts_everything():
    dialogue = Dialogue()
    producer_id = dialogue.finished(topics=(ORDERS, BILLS))
    dialogue.machine.on_topics_deleted([BILLS.named, NamedTopic("others", uuid.UUID(int=3))], dialogue.now)
    assert dialogue.commit(producer_id) == "LOST_TOPIC"
    assert dialogue.answers[dialogue.tokens].topic == "bills"
    assert dialogue.ends == {(101, 0): "aborted"}


def test_a_topic_that_is_deleted_while_a_member_is_written_is_not_missed():
    dialogue = Dialogue()
    dialogue.finished()
    dialogue.takes = False
    dialogue.open(attempt="b", topics=(BILLS,))
    dialogue.machine.on_topics_deleted([BILLS.named], dialogue.now)
    dialogue.takes = True
    dialogue.become(dialogue.writes.pop())
    assert dialogue.commit(producer_id_of(101, 0)) == "LOST_TOPIC"


@pytest.mark.parametrize("is_known", [False, True])
def test_a_request_that_read_the_id_of_a_topic_before_its_deletion_is_to_be_asked_again(is_known):
    """It arrives after the notice of the deletion. A member of it would be committed without its rows."""
    dialogue = Dialogue()
    member = dialogue.member(topics=()) if is_known else NO_PRODUCER_ID
    dialogue.machine.on_topics_deleted([ORDERS.named], dialogue.now)
    answer = dialogue.open(producer_id=member, topics=(ORDERS, BILLS))
    assert answer.error is ErrorCode.unknown_topic_or_partition
    made_again = TransactionTopic("orders", uuid.UUID(int=9), (0,))
    winner = dialogue.open(producer_id=member, topics=(made_again, BILLS)).producer_id
    dialogue.says(winner, FINISHED)
    dialogue.commit(winner)
    assert dialogue.ends == {(101, 0): "committed"}
    assert [topic.topic_id for topic in dialogue.sent[0].topics] == [BILLS.topic_id, made_again.topic_id]


def test_a_late_request_does_not_take_a_member_back_to_the_topic_that_is_deleted():
    """The rows in the topic that was made under its name would never get a marker."""
    dialogue = Dialogue()
    made_again = TransactionTopic("orders", uuid.UUID(int=9), (0,))
    dialogue.machine.on_topics_deleted([ORDERS.named], dialogue.now)
    winner = dialogue.member(topics=(made_again,))
    assert dialogue.open(producer_id=winner).error is ErrorCode.unknown_topic_or_partition
    dialogue.says(winner, FINISHED)
    dialogue.commit(winner)
    assert [topic.topic_id for topic in dialogue.sent[0].topics] == [made_again.topic_id]


def test_a_deleted_topic_is_remembered_for_no_longer_than_a_request_can_last():
    dialogue = Dialogue()
    dialogue.machine.on_topics_deleted([ORDERS.named], dialogue.now)
    dialogue.pass_time(DELETIONS_KEPT_MS + 1)
    dialogue.member(topics=(BILLS,))
    assert not dialogue.machine.deleted


def test_a_topic_that_is_made_again_gets_no_rows_of_members_of_the_old_one():
    """Its partitions would get no markers: those go to the topic that was registered."""
    dialogue = Dialogue()
    producer_id = dialogue.member()
    dialogue.machine.on_topics_deleted([NamedTopic("orders", uuid.UUID(int=9))], dialogue.now)
    assert dialogue.verify(producer_id, 0, 1) == ["none", "none"]
    dialogue.machine.on_topics_deleted([ORDERS.named], dialogue.now)
    assert dialogue.verify(producer_id, 0, 1) == ["invalid_txn_state", "invalid_txn_state"]


def test_a_loading_coordinator_names_the_topics_of_its_log():
    """The shell asks for them before the load is over, and looks afterwards which of them are gone."""
    dialogue = Dialogue()
    dialogue.member(topics=(ORDERS, BILLS))
    loading = WriteMachine(WriteSettings())
    for record in dialogue.log:
        loading.replay(record)
    assert loading.topics() == {ORDERS.named, BILLS.named}


def test_topics_are_those_of_open_writes():
    dialogue = Dialogue()
    dialogue.member(topics=(ORDERS, BILLS))
    assert dialogue.machine.topics() == {ORDERS.named, BILLS.named}
    dialogue.abort()
    dialogue.write_markers()
    assert dialogue.machine.topics() == frozenset()


# Prepared


def test_a_prepared_write_has_everybody_ask_again_but_its_own_commit_which_waits():
    dialogue = Dialogue()
    winner, loser = dialogue.finished(attempt="a"), dialogue.finished(attempt="b")
    first = dialogue.commit(winner)
    for version in (1, 2):
        assert dialogue.open(version, attempt="c").outcome.name == "BEING_ENDED"
    assert dialogue.abort() == "BEING_ENDED"
    assert dialogue.commit(loser) == "BEING_ENDED"
    second = dialogue.commit(winner)
    dialogue.write_markers()
    assert [dialogue.answers[one].outcome.name for one in (first, second)] == ["COMMITTED"] * 2
    assert dialogue.commit(loser) == "ALREADY_COMMITTED"


def test_a_driver_asks_for_a_version_that_is_committed_while_a_later_one_is_being_ended():
    dialogue = Dialogue()
    before = dialogue.finished(version=1)
    dialogue.commit(before, version=1)
    dialogue.write_markers()
    dialogue.commit(dialogue.finished(version=2), version=2)
    assert dialogue.state == ("prepared_commit", 1)
    assert dialogue.commit(before, version=1) == "ALREADY_COMMITTED"
    assert dialogue.commit(version=2) == "BEING_ENDED"


def test_a_commit_whose_markers_take_long_is_told_that_it_is_decided():
    dialogue = Dialogue()
    winner = dialogue.finished()
    token = dialogue.commit(winner)
    dialogue.pass_time(dialogue.settings.end_wait_ms)
    assert dialogue.answers[token].outcome.name == "NOT_VISIBLE_YET"
    again = dialogue.commit(winner)
    dialogue.pass_time(TIMEOUT_MS)
    assert dialogue.answers[again].outcome.name == "NOT_VISIBLE_YET"
    dialogue.write_markers()
    assert dialogue.commit(winner) == "ALREADY_COMMITTED"


def test_a_member_without_partitions_needs_no_marker():
    dialogue = Dialogue()
    winner = dialogue.finished(topics=())
    assert dialogue.commit(winner) == "COMMITTED"
    assert dialogue.sent == []
    assert dialogue.state == ("idle", 1)


def test_markers_of_another_write_or_twice_complete_nothing():
    dialogue = Dialogue()
    winners = [dialogue.finished(attempt=attempt) for attempt in "ab"]
    dialogue.commit(*winners)
    for producer_id in (winners[0], winners[0], producer_id_of(7, 1), producer_id_of(101, 9)):
        dialogue.ask(MarkersWritten(APP, producer_id, 0, True))
    assert dialogue.state == ("prepared_commit", -1)
    dialogue.write_markers()
    assert dialogue.state == ("idle", 1)


# Verification


def test_only_working_members_may_write_and_only_where_they_are_registered():
    dialogue = Dialogue()
    producer_id = dialogue.member()
    assert dialogue.verify(producer_id, 0, 1, 2) == ["none", "none", "invalid_txn_state"]
    assert dialogue.verify(producer_id, 0, epoch=1) == ["invalid_txn_state"]
    assert dialogue.verify(producer_id_of(101, 1), 0) == ["invalid_producer_id_mapping"]
    assert dialogue.verify(producer_id_of(100, 0), 0) == ["invalid_producer_id_mapping"]
    dialogue.says(producer_id, FINISHED)
    assert dialogue.verify(producer_id, 0) == ["invalid_txn_state"]
    dialogue.commit(producer_id)
    assert dialogue.verify(producer_id, 0) == ["invalid_txn_state"]
    dialogue.write_markers()
    assert dialogue.verify(producer_id, 0) == ["invalid_producer_id_mapping"]


@pytest.mark.parametrize("how", ["silence", "withdrawal", "abort of its run"])
def test_an_aborted_member_of_an_open_write_may_not_write(how):
    dialogue = Dialogue()
    producer_id = dialogue.member(attempt="a", run="one")
    dialogue.finished(attempt="b", run="two")
    if how == "silence":
        dialogue.pass_time(SILENCE_MS)
    elif how == "withdrawal":
        dialogue.says(producer_id, WITHDRAWN, run="one")
    else:
        dialogue.abort(run="one")
    assert dialogue.verify(producer_id, 0) == ["invalid_txn_state"]


# Records, their failures, and successors


def test_an_attempt_learns_its_producer_id_only_once_it_is_replicated():
    dialogue = Dialogue()
    dialogue.takes = False
    token = dialogue.open()
    assert token not in dialogue.answers
    dialogue.become(dialogue.writes.pop())
    assert dialogue.answers[dialogue.tokens].producer_id == producer_id_of(101, 0)


def test_a_refused_record_leaves_everything_as_it_was():
    dialogue = Dialogue()
    winner = dialogue.finished()
    dialogue.takes = False
    token = dialogue.commit(winner)
    dialogue.become(dialogue.writes.pop(), Refused(ErrorCode.not_enough_replicas))
    assert dialogue.answers[token].error is ErrorCode.coordinator_not_available
    assert dialogue.state == ("open", -1)
    assert dialogue.sent == []
    dialogue.takes = True
    assert isinstance(dialogue.commit(winner), int)


def test_a_record_in_doubt_is_answered_once_and_counts_when_it_is_written():
    dialogue = Dialogue()
    winner = dialogue.finished()
    dialogue.takes = False
    token = dialogue.commit(winner)
    prepared = dialogue.writes.pop()
    dialogue.become(prepared, InDoubt(ErrorCode.request_timed_out))
    assert dialogue.answers[token].error is ErrorCode.coordinator_not_available
    assert dialogue.sent == []
    dialogue.takes = True
    dialogue.become(prepared)
    dialogue.write_markers()
    assert dialogue.commit(winner) == "ALREADY_COMMITTED"


def test_the_record_of_the_end_is_written_again_after_it_was_refused():
    dialogue = Dialogue()
    winner = dialogue.finished()
    token = dialogue.commit(winner)
    dialogue.takes = False
    dialogue.write_markers()
    dialogue.become(dialogue.writes.pop(), Refused(ErrorCode.not_enough_replicas))
    assert token not in dialogue.answers
    dialogue.takes = True
    dialogue.pass_time(1_000)
    assert dialogue.answers[token].outcome.name == "COMMITTED"


def test_a_successor_has_the_open_write_with_its_members_and_hears_them_anew():
    dialogue = Dialogue()
    working, done = dialogue.member(attempt="w"), dialogue.finished(attempt="d")
    dialogue.now_ms += SILENCE_MS - 1
    other = dialogue.successor()
    other.pass_time(SILENCE_MS - 1)
    assert other.says(working, FINISHED, attempt="w") == "MEMBER"
    assert write_and_member(other.member(attempt="next")) == (101, 2 + LOST_MEMBERS_MAX)
    token = other.commit(working, done)
    other.write_markers()
    assert other.answers[token].outcome.name == "COMMITTED"


@pytest.mark.bug(
    "B80",
    "records",
    "The producer id of an atomic write's member comes again after an election that lost its record.",
)
def test_the_producer_id_of_a_member_that_an_election_lost_does_not_come_again():
    dialogue = Dialogue()
    kept, lost = dialogue.member(attempt="kept"), dialogue.member(attempt="lost")
    dialogue.log = [record for record in dialogue.log if getattr(record.key, "member_number", 0) != 1]
    other = dialogue.successor()
    assert other.open(attempt="lost", producer_id=lost).outcome.name == "MEMBER_ENDED"
    ids = [other.member(attempt=attempt) for attempt in ("lost", "next")]
    assert [write_and_member(one) for one in ids] == [
        (101, 1 + LOST_MEMBERS_MAX),
        (101, 2 + LOST_MEMBERS_MAX),
    ]
    assert other.says(kept, FINISHED, attempt="kept") == "MEMBER"


@pytest.mark.bug(
    "B88",
    "records",
    "Two coordinators leave the same numbers out, and an atomic write's members get one producer id.",
)
def test_nor_does_that_of_a_member_whose_coordinator_an_election_lost_altogether():
    dialogue = Dialogue()
    dialogue.member(attempt="kept")
    second = dialogue.successor()
    lost = second.member(attempt="lost")
    second.log = dialogue.log
    third = second.successor()
    ids = [lost, third.member(attempt="next")]
    assert [write_and_member(one) for one in ids] == [
        (101, 1 + LOST_MEMBERS_MAX),
        (101, 2 * LOST_MEMBERS_MAX),
    ]


def test_in_a_write_opened_in_an_unknown_epoch_numbers_are_left_out_behind_the_last():
    dialogue = Dialogue(leader_epoch=7)
    dialogue.member(attempt="kept")
    dialogue.log = [
        replace(record, value=replace(record.value, opened_in=-1))
        if isinstance(record.value, Head)
        else record
        for record in dialogue.log
    ]
    other = dialogue.successor()
    assert write_and_member(other.member(attempt="next")) == (101, 1 + LOST_MEMBERS_MAX)


def test_a_write_whose_producer_ids_are_used_up_by_many_coordinators_takes_no_member_more():
    dialogue = Dialogue()
    dialogue.member(attempt="0")
    for number in range(1, MEMBER_NUMBERS // LOST_MEMBERS_MAX):
        dialogue = dialogue.successor()
        dialogue.member(attempt=f"{number}")
    dialogue = dialogue.successor()
    assert dialogue.open(attempt="late").outcome.name == "TOO_MANY_MEMBERS"
    assert dialogue.open(attempt="late", version=2).outcome.name == "BEING_ENDED"
    dialogue.write_markers()
    assert write_and_member(dialogue.member(attempt="late", version=2)) == (102, 0)


def test_a_successor_after_the_decision_goes_on_with_the_same_winners():
    dialogue = Dialogue()
    winner, loser = dialogue.finished(attempt="a"), dialogue.finished(attempt="b")
    dialogue.commit(winner)
    other = dialogue.successor()
    assert other.ends == {write_and_member(winner): "committed", write_and_member(loser): "aborted"}
    token = other.commit(winner)
    other.write_markers()
    assert other.answers[token].outcome.name == "COMMITTED"


def test_a_successor_sends_the_markers_of_aborted_members_again():
    dialogue = Dialogue()
    withdrawn, of_run = dialogue.member(attempt="a"), dialogue.member(attempt="b", run="gone")
    dialogue.finished(attempt="c")
    dialogue.says(withdrawn, WITHDRAWN)
    dialogue.abort(run="gone")
    other = dialogue.successor()
    assert other.ends == {write_and_member(withdrawn): "aborted", write_and_member(of_run): "aborted"}
    assert other.open(attempt="late", run="gone").outcome.name == "MEMBER_ENDED"


def test_a_complete_write_leaves_nothing_but_its_head_in_the_log():
    dialogue = Dialogue()
    for number in range(450):
        dialogue.member(attempt=f"{number}")
    winner = dialogue.finished(attempt="w")
    dialogue.commit(winner)
    dialogue.write_markers()
    left = {record.key for record in dialogue.successor().log if record.value is not None}
    assert left == {HeadKey(APP)}


def test_a_successor_removes_the_members_that_a_complete_write_left_behind():
    dialogue = Dialogue()
    winner = dialogue.finished()
    dialogue.commit(winner)
    dialogue.takes = False
    dialogue.write_markers()
    dialogue.become(dialogue.writes.pop())  # the head; its members' tombstones are lost
    other = dialogue.successor()
    assert [record.key for record in other.log if record.value is None] == [MemberKey(APP, 101, 0)]
    assert other.state == ("idle", 1)


def test_garbage_that_the_log_refuses_is_removed_later():
    dialogue = Dialogue()
    winner = dialogue.finished()
    dialogue.commit(winner)
    dialogue.takes = False
    dialogue.write_markers()
    dialogue.become(dialogue.writes.pop())
    dialogue.become(dialogue.writes.pop(), Refused(ErrorCode.not_enough_replicas))
    dialogue.takes = True
    dialogue.pass_time(1_000)
    assert [record.key for record in dialogue.log if record.value is None] == [MemberKey(APP, 101, 0)]


def test_whoever_waits_when_the_coordinator_resigns_is_told_to_ask_another():
    dialogue = Dialogue()
    waiting = dialogue.commit(dialogue.finished())
    assert [(one.token, one.response.error.name) for one in dialogue.machine.on_resigned()] == [
        (waiting, "not_coordinator")
    ]
    dialogue = Dialogue()
    dialogue.takes = False
    token = dialogue.open()
    assert [one.token for one in dialogue.machine.on_resigned()] == [token]


# How long an app is remembered


def test_an_app_is_remembered_for_a_year_after_its_last_change():
    dialogue = Dialogue()
    dialogue.committed()
    dialogue.pass_time(365 * DAY_MS - 1)
    assert dialogue.open(1).outcome.name == "ALREADY_COMMITTED"
    dialogue.pass_time(1)
    assert APP not in dialogue.machine.apps
    assert [record.key for record in dialogue.log if record.value is None][-1] == HeadKey(APP)


def test_a_plain_write_is_remembered_for_ten_minutes():
    dialogue = Dialogue()
    dialogue.open(is_plain=True)
    dialogue.abort()
    dialogue.write_markers()
    dialogue.pass_time(599_999)
    assert APP in dialogue.machine.apps
    dialogue.pass_time(1)
    assert APP not in dialogue.machine.apps


def test_an_open_write_does_not_expire():
    dialogue = Dialogue(WriteSettings(retention_ms=1))
    producer_id = dialogue.member()
    dialogue.pass_time(SILENCE_MS - 1)
    assert dialogue.says(producer_id, WORKING) == "MEMBER"


def test_a_successor_knows_by_the_wall_clock_when_an_app_expires():
    dialogue = Dialogue()
    dialogue.committed()
    dialogue.now_ms += 364 * DAY_MS
    other = dialogue.successor()
    other.pass_time(DAY_MS)
    assert APP not in other.machine.apps


# Bad input


@pytest.mark.parametrize("timeout_ms", [-1, 0, 900_001])
def test_a_time_out_beyond_its_bounds_is_refused(timeout_ms):
    answer = Dialogue().open(timeout_ms=timeout_ms)
    assert answer.error is ErrorCode.invalid_transaction_timeout


@pytest.mark.parametrize(
    "wrong", [{"app": ""}, {"version": -1}, {"run": ""}, {"attempt": ""}, {"attempt": "a" * 201}]
)
def test_an_attempt_that_names_itself_wrongly_is_refused(wrong):
    right = {"app": APP, "version": 0, "run": "r", "attempt": "a", "timeout_ms": 1, "is_plain": False}
    assert OpenWrite(**right).invalid() is None
    assert OpenWrite(**{**right, **wrong}).invalid().error is ErrorCode.invalid_request


@pytest.mark.parametrize(
    "wrong", [{"app": ""}, {"version": -1}, {"run": ""}, {"winners": (1, 1)}, {"is_commit": False}]
)
def test_an_end_that_makes_no_sense_is_refused(wrong):
    right = {
        "app": APP, "version": 0, "run": "r", "is_commit": True, "is_plain": False, "winners": (1,)
    }  # fmt: skip
    assert EndWrite(**right).invalid() is None
    assert EndWrite(**{**right, **wrong}).invalid().error is ErrorCode.invalid_request


def test_a_topic_that_was_made_again_under_its_name_takes_the_place_of_the_old_one():
    dialogue = Dialogue()
    producer_id = dialogue.member(topics=(ORDERS,))
    again = TransactionTopic("orders", uuid.UUID(int=9), (4,))
    dialogue.open(producer_id=producer_id, topics=(again,))
    assert dialogue.machine.apps[APP].members[0].topics == (again,)
