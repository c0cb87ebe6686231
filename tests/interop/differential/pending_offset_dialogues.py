"""Dialogues about the offsets of a group that are part of a transaction."""

from typing import Any, Final

from tests.interop.differential.coordinator_dialogues import NOBODY, Dialogue
from tests.interop.differential.group import Group, text
from tests.interop.differential.producer import Transactions, older


def offsets_that_commit(txn: Transactions) -> None:
    one = txn.init()
    txn.add_group(one)
    txn.describe()
    txn.commit_offset(one, partitions=(0, 1))
    txn.committed()
    txn.end(one, commits=True)
    txn.committed()


def offsets_that_abort(txn: Transactions) -> None:
    one = txn.init()
    for offset in (5, 9):
        txn.add_group(one)
        txn.commit_offset(one, offset)
        txn.committed()
        txn.end(one, commits=offset == 5)
        txn.committed()


def offsets_without_an_addition(txn: Transactions) -> None:
    one = txn.init()
    txn.commit_offset(one)
    txn.committed()
    txn.add(one)
    txn.commit_offset(one)
    txn.add_group(one)
    txn.commit_offset(one)
    txn.end(one, commits=True)
    txn.commit_offset(one)
    txn.committed()


def a_later_commit_counts(txn: Transactions) -> None:
    one, group = txn.init(), Group(txn.talk, txn.name)
    txn.add_group(one)
    txn.commit_offset(one, 5)
    txn.commit_offset(one, 6)
    group.commit(9, topic=txn.topic.name)
    txn.committed()
    txn.end(one, commits=True)
    txn.committed()


def an_earlier_commit_does_not(txn: Transactions) -> None:
    one, group = txn.init(), Group(txn.talk, txn.name)
    group.commit(9, topic=txn.topic.name)
    txn.add_group(one)
    txn.commit_offset(one, 5)
    txn.committed()
    txn.end(one, commits=True)
    txn.committed()


def a_group_with_pending_offsets_is_deleted(txn: Transactions) -> None:
    one, group = txn.init(), Group(txn.talk, txn.name)
    txn.add_group(one)
    txn.commit_offset(one)
    group.describe()
    group.delete()
    txn.end(one, commits=True)
    txn.committed()


def pending_offsets_are_deleted(txn: Transactions) -> None:
    one, group = txn.init(), Group(txn.talk, txn.name)
    txn.add_group(one)
    txn.commit_offset(one)
    group.delete_offsets(txn.topic.name)
    txn.committed()
    txn.end(one, commits=True)
    txn.committed()
    group.delete_offsets(txn.topic.name)
    txn.committed()
    group.delete()


def what_an_abort_leaves_of_a_group(txn: Transactions) -> None:
    one, group = txn.init(), Group(txn.talk, txn.name)
    group.commit(3, topic=txn.topic.name)
    txn.add_group(one)
    txn.commit_offset(one)
    txn.end(one, commits=False)
    group.describe()
    txn.committed()
    group.delete()


def members_commit_in_a_transaction(txn: Transactions) -> None:
    one, group = txn.init(), Group(txn.talk, txn.name)
    me = group.joined()
    txn.add_group(one)
    generation, member = me["generation_id"], text(me["member_id"])
    txn.commit_offset(one, generation=generation, member=member)
    txn.commit_offset(one, 6, generation=generation + 1, member=member)
    txn.commit_offset(one, 7, generation=generation - 1, member=member)
    txn.commit_offset(one, 8, generation=generation, member="a stranger")
    txn.commit_offset(one, 9, generation=-1, member=member)
    txn.commit_offset(one, 10, generation=generation)
    txn.commit_offset(one, 11, generation=generation, member=member, instance="nobody")
    txn.commit_offset(one, 12)
    txn.committed()
    txn.end(one, commits=True)
    txn.committed()


def a_static_member_whose_twin_is_there(txn: Transactions) -> None:
    one, group = txn.init(), Group(txn.talk, txn.name)
    instance: dict[str, Any] = {"group_instance_id": "one"} if txn.talk.level >= 3 else {}
    joined = group.send_join("a", **instance)
    me = joined.answer()
    if not isinstance(me, str) and me["error_code"]:
        me = group.send_join("a", text(me["member_id"])).answer()
    group.sync("a", me, {text(me["member_id"]): b"all"})
    txn.add_group(one)
    txn.commit_offset(
        one,
        generation=me["generation_id"],
        member=text(me["member_id"]),
        instance=instance.get("group_instance_id"),
    )
    txn.commit_offset(one, generation=me["generation_id"], member=text(me["member_id"]), instance="another")
    txn.end(one, commits=True)
    txn.committed()


def members_commit_between_join_and_sync(txn: Transactions) -> None:
    one, group = txn.init(), Group(txn.talk, txn.name)
    me = group.join()
    txn.add_group(one)
    txn.commit_offset(one, generation=me["generation_id"], member=text(me["member_id"]))
    txn.commit_offset(one)
    txn.committed()
    txn.end(one, commits=True)
    txn.committed()


def members_of_a_group_that_is_not_there(txn: Transactions) -> None:
    one = txn.init()
    txn.add_group(one)
    txn.commit_offset(one, generation=1, member="nobody")
    txn.commit_offset(one, generation=1)
    txn.commit_offset(one, member="nobody")
    txn.commit_offset(one, generation=-1, instance="nobody")
    txn.committed()
    txn.end(one, commits=True)
    txn.committed()


def odd_offsets(txn: Transactions) -> None:
    one = txn.init()
    txn.add_group(one)
    txn.commit_offset(one, -1)
    txn.commit_offset(one, 2**62)
    txn.commit_offset(one, metadata=None)
    txn.commit_offset(one, metadata="x" * 65)
    txn.commit_offset(one, partitions=())
    txn.commit_offset(one, partitions=(0, 77))
    txn.commit_offset(one, partitions=(-1,))
    txn.commit_offset(one, topic="nothing of this name")
    txn.commit_offset(one, topic="a/b")
    txn.commit_offset(one, topic="__consumer_offsets")
    txn.committed()
    txn.end(one, commits=True)
    txn.committed()


def names_of_groups_in_transactions(txn: Transactions) -> None:
    one = txn.init()
    for group in ("", " ", "a/b", "x" * 300):
        txn.add_group(one, group)
        txn.commit_offset(one, group=group)
        txn.committed(group)
    txn.end(one, commits=True)
    for group in ("", " ", "a/b", "x" * 300):
        txn.committed(group)


def offsets_of_another_producer(txn: Transactions) -> None:
    first = txn.init()
    one = txn.init()
    txn.add_group(one)
    txn.commit_offset(first)
    txn.commit_offset(older(one, -1))
    txn.commit_offset(NOBODY)
    txn.commit_offset({"producer_id": -1, "producer_epoch": -1})
    txn.commit_offset({**one, "producer_epoch": -1})
    txn.commit_offset(one, name=f"{txn.name} that is not there")
    txn.commit_offset(one)
    txn.committed()
    txn.end(one, commits=True)
    txn.committed()


def a_successor_aborts_pending_offsets(txn: Transactions) -> None:
    one = txn.init()
    txn.add_group(one)
    txn.commit_offset(one)
    two = txn.init_until_done()
    txn.committed()
    txn.commit_offset(one, 6)
    txn.add_group(two)
    txn.commit_offset(two, 7)
    txn.end(two, commits=True)
    txn.committed()


def a_zombie_takes_no_offsets_away(txn: Transactions) -> None:
    one = txn.init()
    two = txn.init()
    txn.add_group(two)
    txn.commit_offset(two, 7)
    txn.commit_offset(one, 8)
    txn.committed()
    txn.end(two, commits=True)
    txn.committed()


def offsets_of_a_transaction_that_times_out(txn: Transactions) -> None:
    one = txn.init(timeout_ms=300)
    txn.add_group(one)
    txn.commit_offset(one)
    txn.settle()
    txn.committed()
    txn.commit_offset(one, 6)
    txn.committed()


def two_producers_for_one_group(txn: Transactions) -> None:
    other = Transactions(txn.talk, f"{txn.name} of the other", txn.topic)
    one, two = txn.init(), other.init()
    txn.add_group(one)
    other.add_group(two, txn.name)
    txn.commit_offset(one, 5)
    other.commit_offset(two, 7, group=txn.name, partitions=(0, 1))
    txn.committed()
    other.end(two, commits=True)
    txn.committed()
    txn.end(one, commits=True)
    txn.committed()


PENDING_OFFSET_DIALOGUES: Final[tuple[Dialogue, ...]] = (
    a_group_with_pending_offsets_is_deleted,
    a_later_commit_counts,
    a_static_member_whose_twin_is_there,
    a_successor_aborts_pending_offsets,
    a_zombie_takes_no_offsets_away,
    an_earlier_commit_does_not,
    members_commit_between_join_and_sync,
    members_commit_in_a_transaction,
    members_of_a_group_that_is_not_there,
    names_of_groups_in_transactions,
    odd_offsets,
    offsets_of_a_transaction_that_times_out,
    offsets_of_another_producer,
    offsets_that_abort,
    offsets_that_commit,
    offsets_without_an_addition,
    pending_offsets_are_deleted,
    two_producers_for_one_group,
    what_an_abort_leaves_of_a_group,
)
