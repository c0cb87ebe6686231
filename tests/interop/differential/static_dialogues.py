"""Dialogues of static members (KIP-345), which exist from JoinGroup 5 on."""

from typing import Any, Final

from tests.interop.differential.dialogues import Dialogue
from tests.interop.differential.group import REBALANCE_IN_PROGRESS, TOPIC, Group, metadata, text

FIRST_LEVEL: Final = 5
ONE: Final[dict[str, Any]] = {"group_instance_id": "one"}
TWO: Final[dict[str, Any]] = {"group_instance_id": "two"}


def a_static_member_comes_back(group: Group) -> None:
    me = group.joined(**ONE)
    group.describe()
    back = group.join("b", **ONE)
    group.sync("b", back, {text(back["member_id"]): b"again"}, **ONE)
    group.heartbeat("b", back, **ONE)
    group.heartbeat("a", me, **ONE)
    group.heartbeat("a", me)
    group.describe()


def a_twin_is_fenced(group: Group) -> None:
    me = group.joined(**ONE)
    group.join("b", **ONE)
    generation, member = me["generation_id"], text(me["member_id"])
    group.heartbeat("a", me, **ONE)
    group.sync("a", me, **ONE)
    group.commit(generation=generation, member=member, **ONE)
    group.commit(generation=generation, member=member)
    group.send_join("a", member, **ONE).answer()
    leaving = [{"member_id": member, "group_instance_id": "one"}]
    group.talk.ask("LeaveGroup", group_id=group.name, member_id=member, members=leaving)
    group.describe()


def a_static_member_with_other_protocols(group: Group) -> None:
    group.joined(**ONE)
    group.join("b", protocols=[{"name": "range", "metadata": metadata(b"other")}], **ONE)
    group.describe()


def an_unknown_instance(group: Group) -> None:
    me = group.joined(**ONE)
    group.heartbeat("a", me, group_instance_id="nobody")
    group.sync("a", me, group_instance_id="nobody")
    group.commit(generation=me["generation_id"], member=text(me["member_id"]), group_instance_id="nobody")
    group.commit(group_instance_id="one")
    group.leave("a", instances=["nobody"])
    group.send_join("b", "made up", group_instance_id="nobody").answer()


def names_of_instances(group: Group) -> None:
    for name in ("", ".", " ", "a/b", "x" * 250, "\u00e9"):
        Group(group.talk, f"{group.name} of {name}").send_join(group_instance_id=name).answer()


def static_members_leave_together(group: Group) -> None:
    first = group.joined(**ONE)
    pending = group.send_second("b", **TWO)
    group.heartbeat_until("a", first, REBALANCE_IN_PROGRESS)
    again = group.send_join("a", text(first["member_id"]), **ONE)
    one, two = again.answer(), pending.answer()
    waiting = group.send_sync("b", two, **TWO)
    group.sync("a", one, {text(one["member_id"]): b"a", text(two["member_id"]): b"b"}, **ONE)
    waiting.answer()
    group.leave("c", instances=["one", "two", "nobody"])
    group.leave("c", text(one["member_id"]))
    group.describe()


def a_static_follower_comes_back_to_a_stable_group(group: Group) -> None:
    first = group.joined(**ONE)
    pending = group.send_second("b", **TWO)
    group.heartbeat_until("a", first, REBALANCE_IN_PROGRESS)
    again = group.send_join("a", text(first["member_id"]), **ONE)
    one, two = again.answer(), pending.answer()
    waiting = group.send_sync("b", two, **TWO)
    group.sync("a", one, {text(one["member_id"]): b"a", text(two["member_id"]): b"b"}, **ONE)
    waiting.answer()
    back = group.join("c", **TWO)
    group.sync("c", back, **TWO)
    group.heartbeat("a", one, **ONE)
    group.describe()
    group.commit(generation=back["generation_id"], member=text(back["member_id"]), **TWO)
    group.fetch(TOPIC)


def a_static_member_while_its_group_joins(group: Group) -> None:
    first = group.joined(**ONE)
    pending = group.send_second("b", **TWO)
    group.heartbeat_until("a", first, REBALANCE_IN_PROGRESS)
    twin = group.send_join("c", **TWO)
    pending.answer()
    again = group.send_join("a", text(first["member_id"]), **ONE)
    again.answer()
    twin.answer()
    group.describe()


STATIC_DIALOGUES: Final[tuple[Dialogue, ...]] = (
    a_static_follower_comes_back_to_a_stable_group,
    a_static_member_comes_back,
    a_static_member_while_its_group_joins,
    a_static_member_with_other_protocols,
    a_twin_is_fenced,
    an_unknown_instance,
    names_of_instances,
    static_members_leave_together,
)
