"""What a restart proves."""

from sparklog.core.controller.incarnation import (
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


def first(*directories):
    record = next_incarnation(None, directories or (A,), host_id="host", boot_id="boot")
    return StoredIncarnation(record, 4, EPOCH)


def again(previous, *directories, boot="boot", host="host"):
    return next_incarnation(previous, directories or (A,), host_id=host, boot_id=boot)


def clean(uuid, epoch=EPOCH, empty=False):
    return DirectoryIdentity(uuid, clean_epoch=epoch, empty=empty)


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
    assert again(first(), A, DirectoryIdentity("new", empty=True)).intact_since == 0


def test_an_emptied_directory_proves_nothing_unless_it_was_left_so_cleanly():
    assert again(first(), DirectoryIdentity("a", empty=True)).intact_since == 5
    assert again(first(), clean("a", empty=True)).intact_since == 0


def test_a_corrupt_log_proves_nothing_on_whatever_boot_and_however_clean_the_stop():
    assert again(first(), DirectoryIdentity("a", corrupt=True)).intact_since == 5
    corrupt = DirectoryIdentity("a", clean_epoch=EPOCH, corrupt=True)
    assert again(first(), corrupt).intact_since == 5


def test_a_suspect_directory_proves_nothing_at_the_next_restart_and_is_then_forgotten():
    marked = mark_suspect(first(), "a")
    assert (marked.suspect, marked.broker_epoch, marked.intact_since) == (("a",), EPOCH, 0)
    after = again(StoredIncarnation(marked, 5, EPOCH), clean("a"))
    assert (after.intact_since, after.suspect, after.broker_epoch) == (6, (), None)


def test_what_was_intact_before_an_unproven_restart_is_lost_and_what_came_after_stays_proven():
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


def test_a_suspect_directory_that_is_back_proves_nothing() -> None:
    before = StoredIncarnation(
        Incarnation(directories=("a", "b"), host_id="h", boot_id="x", intact_since=3), 7, BrokerEpoch(70)
    )
    here = [DirectoryIdentity("a"), DirectoryIdentity("b", corrupt=True)]
    assert next_incarnation(before, here, host_id="h", boot_id="x").intact_since == 8
