"""What a restart proves."""

import uuid
from dataclasses import replace

import pytest

from sparklog.core.controller.state.incarnation import (
    SPARED_MAX,
    DirectoryIdentity,
    Incarnation,
    StoredIncarnation,
    mark_suspect,
    next_incarnation,
    same_machine,
    shares_directory,
)
from sparklog.model.ids import BrokerEpoch

A, B = DirectoryIdentity("a"), DirectoryIdentity("b")
EPOCH = BrokerEpoch(70)
TOPIC, LATER_TOPIC = uuid.UUID(int=1), uuid.UUID(int=2)
IN_A, ALSO_IN_A, IN_B = (TOPIC, 0), (TOPIC, 1), (TOPIC, 2)
FULL_A = replace(A, logs=frozenset({IN_A, ALSO_IN_A}))
FULL_B = replace(B, logs=frozenset({IN_B}))
BROKEN_B = replace(FULL_B, corrupt=True)


def first(*directories):
    record = next_incarnation(None, directories or (A,), host_id="host", boot_id="boot")
    return StoredIncarnation(record, 4, EPOCH)


def again(previous, *directories, boot="boot", host="host"):
    return next_incarnation(previous, directories or (A,), host_id=host, boot_id=boot)


def clean(uuid, epoch=EPOCH, emptied=False):
    return DirectoryIdentity(uuid, clean_epoch=epoch, emptied=emptied)


def test_the_first_incarnation_proves_itself_and_nothing_before():
    record = first().record
    assert record.intact_since == 0
    assert record.proves(0)
    assert not record.proves(-1)


def test_the_same_directories_on_the_same_boot_are_intact():
    record = again(first(A, B), B, A)
    assert (record.intact_since, record.clean) == (0, False)


def test_another_boot_without_a_clean_stop_proves_nothing():
    assert again(first(), boot="later").intact_since == 5


def test_another_host_proves_nothing():
    assert again(first(), host="elsewhere").intact_since == 5


def test_a_clean_stop_of_the_previous_incarnation_proves_the_log_wherever_it_is():
    record = again(first(), clean("a"), boot="later", host="elsewhere")
    assert (record.intact_since, record.clean) == (0, True)


def test_a_clean_marker_of_an_older_incarnation_proves_nothing():
    assert again(first(), clean("a", BrokerEpoch(60)), boot="later").intact_since == 5


def test_one_directory_without_its_marker_spoils_the_clean_stop():
    assert again(first(A, B), clean("a"), B, boot="later").intact_since == 5


def test_a_missing_directory_proves_nothing():
    assert again(first(A, B), A).intact_since == 5


def test_a_foreign_directory_proves_nothing():
    assert again(first(), DirectoryIdentity("other")).intact_since == 5


def test_a_directory_added_since_changes_nothing():
    assert again(first(), A, DirectoryIdentity("new", emptied=True)).intact_since == 0


def test_an_emptied_directory_proves_nothing_unless_it_was_left_so_cleanly():
    assert again(first(), DirectoryIdentity("a", emptied=True)).intact_since == 5
    assert again(first(), clean("a", emptied=True)).intact_since == 0


def test_a_corrupt_log_proves_nothing_on_whatever_boot_and_however_clean_the_stop():
    assert again(first(), DirectoryIdentity("a", corrupt=True)).intact_since == 5
    corrupt = DirectoryIdentity("a", clean_epoch=EPOCH, corrupt=True)
    assert again(first(), corrupt).intact_since == 5


def test_a_suspect_directory_proves_nothing_at_the_next_restart_and_is_then_forgotten():
    marked = mark_suspect(first(), "a")
    assert (marked.suspect, marked.broker_epoch, marked.intact_since) == (("a",), EPOCH, 0)
    after = again(StoredIncarnation(marked, 5, EPOCH), clean("a"))
    assert (after.intact_since, after.suspect, after.broker_epoch) == (6, (), None)


@pytest.mark.bug("B39", "records", "A directory that failed a write is trusted after a start without it.")
def test_a_suspect_directory_that_is_offline_at_a_restart_stays_suspect():
    marked = StoredIncarnation(mark_suspect(first(FULL_A, FULL_B), "b"), 5, EPOCH)
    without = next_incarnation(marked, [FULL_A], host_id="host", boot_id="boot", offline_directories=1)
    assert (without.suspect, without.directories) == (("b",), ("a", "b"))
    assert without.proves(0, IN_A)
    back = again(StoredIncarnation(without, 6, EPOCH), FULL_A, FULL_B)
    assert (back.suspect, back.proves(0, IN_A), back.proves(6, IN_B)) == ((), True, False)


@pytest.mark.bug("B39")
def test_a_suspect_directory_that_was_removed_costs_one_restart_its_proof():
    marked = StoredIncarnation(mark_suspect(first(A, B), "b"), 5, EPOCH)
    without = again(marked, A)
    assert (without.suspect, without.directories, without.intact_since) == (("b",), ("a",), 6)
    later = again(StoredIncarnation(without, 6, EPOCH), A)
    assert (later.suspect, later.intact_since) == (("b",), 6)
    back = again(StoredIncarnation(later, 7, EPOCH), A, B)
    assert (back.suspect, back.intact_since) == ((), 6)


def test_an_unproven_restart_unproves_older_logs_and_no_newer_ones():
    lost = again(first(), boot="later")
    later = again(StoredIncarnation(lost, 5, BrokerEpoch(80)), boot="later")
    assert not later.proves(4)
    assert later.proves(5)


def test_a_holder_is_recognised_by_directory_host_and_boot():
    record = first(A, B).record
    assert shares_directory(record, [B])
    assert not shares_directory(record, [DirectoryIdentity("c")])
    assert same_machine(record, host_id="host", boot_id="boot")
    assert not same_machine(record, host_id="host", boot_id="later")


def test_directories_that_are_offline_need_not_prove_anything_and_are_remembered() -> None:
    before = StoredIncarnation(
        Incarnation(directories=("a", "b"), host_id="h", boot_id="x", intact_since=3), 7, BrokerEpoch(70)
    )
    here = [DirectoryIdentity("a")]
    offline = next_incarnation(before, here, host_id="h", boot_id="x", offline_directories=1)
    assert (offline.directories, offline.intact_since) == (("a", "b"), 3)
    gone = next_incarnation(before, here, host_id="h", boot_id="x")
    assert (gone.directories, gone.intact_since) == (("a",), 8)
    exchanged = [DirectoryIdentity("c")]
    assert next_incarnation(
        before, exchanged, host_id="h", boot_id="x", offline_directories=1
    ).intact_since == 8  # fmt: skip


@pytest.mark.bug("B41", "records", "A directory that a power cut struck proves what it lost.")
def test_a_directory_offline_at_the_first_start_of_a_boot_proves_nothing_when_it_is_back():
    stopped = first(FULL_A, replace(FULL_B, logs=frozenset()))
    rebooted = next_incarnation(
        stopped, [replace(FULL_A, clean_epoch=EPOCH)], host_id="host", boot_id="later", offline_directories=1
    )
    assert rebooted.intact_since == 0
    back = replace(FULL_B, same_boot=False)
    record = again(StoredIncarnation(rebooted, 5, BrokerEpoch(80)), FULL_A, back, boot="later")
    assert (record.proves(0, IN_A), record.proves(5, IN_B), record.proves(6, IN_B)) == (True, False, True)


@pytest.mark.bug(
    "B75",
    "words",
    "A clean stop does not prove a directory that the first start after a reboot did not have.",
)
@pytest.mark.parametrize(
    ("clean_epoch", "is_proven"),
    [
        pytest.param(EPOCH, True, id="of who had it last"),
        pytest.param(BrokerEpoch(EPOCH - 1), False, id="of somebody before that"),
        pytest.param(None, False, id="none"),
    ],
)
@pytest.mark.parametrize("boots", [("later", "later"), ("later", "still later"), ("boot", "later")])
def test_a_clean_stop_proves_a_directory_that_was_offline_since_whatever_boots_there_were(
    clean_epoch, is_proven, boots
):
    """Seed 923543: nothing is written to it meanwhile."""
    stopped = first(FULL_A, FULL_B)
    without = went_on(
        next_incarnation(stopped, [clean("a")], host_id="host", boot_id=boots[0], offline_directories=1),
        stopped,
    )
    a = clean("a", without.broker_epoch)
    twice = went_on(
        next_incarnation(without, [a], host_id="host", boot_id=boots[0], offline_directories=1), without
    )
    for previous in (without, twice):
        back = replace(FULL_B, clean_epoch=clean_epoch, same_boot=False)
        a = replace(FULL_A, clean_epoch=previous.broker_epoch)
        record = again(previous, a, back, boot=boots[1])
        assert record.proves(4, IN_B) is is_proven
        assert record.absent == {}


@pytest.mark.bug("B75")
def test_a_directory_that_was_had_again_is_not_proven_by_a_clean_stop_of_before():
    stopped = first(FULL_A, FULL_B)
    without = went_on(
        next_incarnation(stopped, [clean("a")], host_id="host", boot_id="boot", offline_directories=1),
        stopped,
    )
    back = went_on(again(without, clean("a", without.broker_epoch), clean("b")), without)
    a = clean("a", back.broker_epoch)
    record = again(back, a, replace(clean("b"), same_boot=False), boot="later")
    assert not record.proves(back.number, IN_B)


def test_a_suspect_directory_that_is_back_proves_nothing() -> None:
    before = StoredIncarnation(
        Incarnation(directories=("a", "b"), host_id="h", boot_id="x", intact_since=3), 7, BrokerEpoch(70)
    )
    here = [DirectoryIdentity("a"), DirectoryIdentity("b", corrupt=True)]
    assert next_incarnation(before, here, host_id="h", boot_id="x").intact_since == 8


def went_on(record, previous):
    """``record`` as it is found by the registration after it."""
    return StoredIncarnation(record, previous.number + 1, BrokerEpoch(previous.broker_epoch + 1))


@pytest.mark.bug(
    "B23", "words", "A failed fsync in one directory costs the replicas in the other their proof."
)
def test_a_directory_that_lost_something_costs_the_logs_in_the_others_nothing():
    record = again(first(FULL_A, FULL_B), FULL_A, BROKEN_B)
    assert record.proves(0, IN_A)
    assert not record.proves(4, IN_B)
    assert record.proves(5, IN_B)


def test_a_directory_marked_suspect_in_zookeeper_costs_the_logs_in_the_others_nothing():
    marked = went_on(mark_suspect(first(FULL_A, FULL_B), "b"), first())
    record = again(marked, FULL_A, FULL_B)
    assert (record.proves(0, IN_A), record.proves(0, IN_B)) == (True, False)


def test_a_log_of_a_later_topic_of_the_same_name_is_another():
    record = again(first(FULL_A, FULL_B), FULL_A, BROKEN_B)
    assert not record.proves(4, (LATER_TOPIC, 0))


def test_one_directory_without_its_clean_marker_costs_the_others_nothing_over_a_reboot():
    record = again(first(FULL_A, FULL_B), replace(FULL_A, clean_epoch=EPOCH), FULL_B, boot="later")
    assert (record.proves(0, IN_A), record.proves(0, IN_B)) == (True, False)


def test_a_directory_that_was_exchanged_costs_the_others_nothing_and_has_nothing_to_prove():
    new = DirectoryIdentity("new", logs=frozenset({IN_B}))
    record = again(first(FULL_A, FULL_B), FULL_A, new)
    assert (record.proves(0, IN_A), record.proves(4, IN_B)) == (True, False)


def test_on_another_boot_no_directory_is_spared():
    assert again(first(FULL_A, FULL_B), FULL_A, BROKEN_B, boot="later").spared == {}


def test_what_was_spared_stays_proven_over_later_restarts_and_what_was_not_stays_unproven():
    before = first(FULL_A, FULL_B)
    spared = went_on(again(before, FULL_A, BROKEN_B), before)
    later = again(spared, FULL_A, FULL_B)
    assert (later.proves(0, IN_A), later.proves(4, IN_B), later.proves(5, IN_B)) == (True, False, True)


def test_a_log_that_was_lost_and_is_made_anew_in_the_intact_directory_is_not_proven_there():
    before = first(FULL_A, FULL_B)
    spared = went_on(again(before, FULL_A, replace(B, corrupt=True)), before)
    with_it = replace(FULL_A, logs=FULL_A.logs | {IN_B})
    proven = again(spared, with_it, B)
    assert not proven.proves(4, IN_B)
    broken_again = again(went_on(proven, spared), with_it, replace(B, corrupt=True))
    assert not broken_again.proves(4, IN_B)
    assert broken_again.proves(0, IN_A)


def test_two_directories_that_fail_one_after_the_other_leave_nothing_spared_of_before():
    before = first(FULL_A, FULL_B)
    once = went_on(again(before, FULL_A, BROKEN_B), before)
    twice = again(once, replace(FULL_A, corrupt=True), FULL_B)
    assert (twice.proves(5, IN_A), twice.proves(4, IN_B), twice.proves(5, IN_B)) == (False, False, True)


def test_a_suspect_directory_offline_at_the_next_start_proves_nothing_when_it_is_back():
    marked = went_on(mark_suspect(first(FULL_A, FULL_B), "b"), first())
    without = next_incarnation(marked, [FULL_A], host_id="host", boot_id="boot", offline_directories=1)
    back = again(went_on(without, marked), FULL_A, FULL_B)
    assert (back.proves(0, IN_A), back.proves(0, IN_B)) == (True, False)


def start_without(previous, *directories):
    return next_incarnation(previous, directories, host_id="host", boot_id="boot", offline_directories=1)


@pytest.mark.bug(
    "B48", "words", "A directory that was offline during an unproven start is never proven again."
)
def test_a_directory_that_was_offline_during_an_unproven_start_is_intact_when_it_is_back():
    """Its broker did not write to it meanwhile, and made nothing anew that may be in it."""
    before = first(FULL_A, FULL_B)
    without = went_on(start_without(before, replace(FULL_A, corrupt=True)), before)
    back = again(without, FULL_A, FULL_B)
    assert (back.proves(0, IN_B), back.proves(4, IN_A), back.proves(5, IN_A)) == (True, False, True)
    later = again(went_on(back, without), FULL_A, FULL_B)
    assert (later.proves(0, IN_B), later.proves(4, IN_A)) == (True, False)


def test_it_is_intact_also_if_it_returns_much_later():
    before = first(FULL_A, FULL_B)
    without = went_on(start_without(before, replace(FULL_A, corrupt=True)), before)
    again_without = went_on(start_without(without, FULL_A), without)
    assert again(again_without, FULL_A, FULL_B).proves(0, IN_B)
    assert again(again_without, replace(FULL_A, corrupt=True), FULL_B).proves(0, IN_B)
    broken_twice = went_on(start_without(without, replace(FULL_A, corrupt=True)), without)
    assert again(broken_twice, FULL_A, FULL_B).proves(0, IN_B)


def test_a_directory_that_was_offline_proves_nothing_if_it_or_its_page_cache_changed():
    before = first(FULL_A, FULL_B)
    without = went_on(start_without(before, replace(FULL_A, corrupt=True)), before)
    assert again(without, FULL_A, FULL_B).proves(0, IN_B)
    for changed in (
        replace(FULL_B, corrupt=True),
        replace(FULL_B, emptied=True),
        replace(FULL_B, same_boot=False),
    ):
        assert not again(without, FULL_A, changed).proves(4, IN_B)
    assert not again(without, FULL_A, FULL_B, boot="later").proves(4, IN_B)
    suspect = went_on(mark_suspect(without, "b"), without)
    assert not again(suspect, FULL_A, FULL_B).proves(4, IN_B)


def test_a_directory_offline_at_the_first_registration_of_a_boot_proves_nothing_older():
    """A start on that boot may have had it, and have come to no end: it says that it is of this boot."""
    before = first(FULL_A, FULL_B)
    record = next_incarnation(before, [FULL_A], host_id="host", boot_id="later", offline_directories=1)
    assert record.unseen == {}
    assert not again(went_on(record, before), FULL_A, FULL_B, boot="later").proves(4, IN_B)
    without = went_on(start_without(before, replace(FULL_A, corrupt=True)), before)
    booted = next_incarnation(
        without, [clean("a", without.broker_epoch)], host_id="host", boot_id="later", offline_directories=1
    )
    assert not again(went_on(booted, without), FULL_A, FULL_B, boot="later").proves(4, IN_B)


def test_a_directory_that_was_lost_before_is_not_waited_for():
    before = first(FULL_A, FULL_B)
    gone = went_on(again(before, FULL_A), before)
    assert gone.record.unseen == {}
    assert not again(gone, FULL_A, FULL_B).proves(4, IN_B)


def test_a_log_that_came_into_the_other_directory_meanwhile_is_not_spared_with_it():
    before = first(FULL_A, FULL_B)
    without = went_on(start_without(before, replace(FULL_A, corrupt=True)), before)
    fuller = replace(FULL_A, logs=FULL_A.logs | {(LATER_TOPIC, 0)})
    assert not again(without, fuller, FULL_B).proves(4, (LATER_TOPIC, 0))


def test_of_more_logs_than_a_node_has_room_for_the_rest_is_unproven():
    many = replace(A, logs=frozenset((TOPIC, number) for number in range(SPARED_MAX + 5)))
    assert len(again(first(many, B), many, BROKEN_B).spared) == SPARED_MAX


# Disks that are still there


def test_an_unproven_restart_on_the_same_disks_keeps_them():
    assert again(first(), boot="later").keeps(0)
    assert again(first(), A, boot="later", host="elsewhere").keeps(0)
    assert again(first(), DirectoryIdentity("a", corrupt=True)).keeps(0)


@pytest.mark.parametrize(
    "directory",
    [DirectoryIdentity("other"), DirectoryIdentity("a", emptied=True)],
    ids=["exchanged", "emptied"],
)
def test_an_exchanged_or_emptied_disk_is_lost_since_this_incarnation(directory):
    record = again(first(), directory)
    assert (record.keeps(4), record.keeps(5)) == (False, True)


def test_a_directory_that_its_broker_emptied_and_left_cleanly_is_kept():
    assert again(first(), clean("a", emptied=True)).keeps(0)


def test_a_lost_disk_stays_lost_over_later_restarts():
    lost = went_on(again(first(), DirectoryIdentity("other")), first())
    later = again(lost, DirectoryIdentity("other"), boot="later")
    assert (later.keeps(4), later.keeps(5)) == (False, True)


@pytest.mark.parametrize("boot", ["boot", "later"])
def test_the_logs_in_a_directory_that_is_left_are_kept_when_another_is_lost(boot):
    record = again(first(FULL_A, FULL_B), FULL_A, boot=boot)
    assert (record.keeps(0, IN_A), record.keeps(4, IN_B), record.keeps(5, IN_B)) == (True, False, True)


@pytest.mark.parametrize("boots", [("boot", "later"), ("later", "later"), ("later", "still later")])
def test_kept_logs_stay_kept_over_later_restarts_whatever_they_prove(boots):
    before = first(FULL_A, FULL_B)
    once = went_on(again(before, FULL_A, boot=boots[0]), before)
    both = replace(FULL_A, logs=FULL_A.logs | {IN_B})
    twice = went_on(again(once, both, boot=boots[1]), once)
    thrice = again(twice, both, boot="much later")
    for record in (twice.record, thrice):
        assert (record.keeps(0, IN_A), record.keeps(4, IN_B), record.keeps(5, IN_B)) == (True, False, True)


def test_a_directory_that_could_not_be_opened_is_not_lost():
    without = next_incarnation(
        first(FULL_A, FULL_B), [FULL_A], host_id="host", boot_id="later", offline_directories=1
    )
    assert (without.keeps(0, IN_A), without.keeps(0, IN_B)) == (True, True)


def test_of_a_lost_and_an_offline_directory_neither_counts_as_kept():
    before = first(FULL_A, FULL_B, DirectoryIdentity("c"))
    record = next_incarnation(before, [FULL_A], host_id="host", boot_id="boot", offline_directories=1)
    assert (record.keeps(0, IN_A), record.keeps(4, IN_B)) == (True, False)


def test_spared_and_kept_logs_share_the_room_of_a_node():
    many = replace(A, logs=frozenset((TOPIC, number) for number in range(SPARED_MAX + 5)))
    for boot in ("boot", "later"):
        record = again(first(many, B), many, boot=boot)
        assert len(record.spared) + len(record.kept) == SPARED_MAX
