"""Dialogues of groups, written by hand; each is had in every version of the APIs that it uses."""

from collections.abc import Callable
from typing import Final

from tests.interop.differential.group import PARTITIONS, REBALANCE_IN_PROGRESS, TOPIC, Group, metadata, text

Dialogue = Callable[[Group], None]

SUBSCRIBED: Final = metadata(b"", TOPIC)
ROUND_ROBIN: Final = {"name": "roundrobin", "metadata": metadata(b"of roundrobin")}
ODD_NAMES: Final = ("", " ", ".", "a/b", "\u202e", "x" * 300)


def one_member_from_join_to_leave(group: Group) -> None:
    me = group.joined()
    group.describe()
    group.heartbeat("a", me)
    group.commit(7, generation=me["generation_id"], member=text(me["member_id"]), partitions=(0, 1))
    group.fetch(TOPIC)
    group.fetch()
    group.leave("a", text(me["member_id"]))
    group.describe()
    group.heartbeat("a", me)


def a_first_join_without_an_id(group: Group) -> None:
    group.send_join().answer()
    group.describe()
    group.send_join(member="made up").answer()


def an_id_that_is_handed_out_and_leaves_before_it_joins(group: Group) -> None:
    answer = group.send_join().answer()
    group.leave("a", text(answer["member_id"]))
    group.leave("a", text(answer["member_id"]))
    group.describe()


def two_members_share_a_generation(group: Group) -> None:
    one, two = group.two()
    group.describe()
    waiting = group.send_sync("b", two)
    group.sync("a", one, {text(one["member_id"]): b"share a", text(two["member_id"]): b"share b"})
    waiting.answer()
    group.describe()
    group.commit(3, generation=two["generation_id"], member=text(two["member_id"]))
    group.sync("b", two)


def a_follower_syncs_with_assignments(group: Group) -> None:
    one, two = group.two()
    waiting = group.send_sync("b", two, {text(two["member_id"]): b"mine"})
    group.sync("a", one, {text(one["member_id"]): b"share a"})
    waiting.answer()


def assignments_that_name_strangers(group: Group) -> None:
    me = group.join()
    group.sync("a", me, {"a stranger": b"share"})
    group.describe()


def a_commit_between_join_and_sync(group: Group) -> None:
    one, two = group.two()
    for joined in (one, two):
        group.commit(generation=joined["generation_id"], member=text(joined["member_id"]))
    group.heartbeat("a", one)
    group.fetch(TOPIC)


def a_late_commit_of_the_last_generation(group: Group) -> None:
    one, _ = group.two()
    group.commit(generation=one["generation_id"] - 1, member=text(one["member_id"]))
    group.heartbeat("a", {**one, "generation_id": one["generation_id"] - 1})
    group.sync("a", {**one, "generation_id": one["generation_id"] - 1})
    group.sync("a", {**one, "generation_id": one["generation_id"] + 1})
    group.heartbeat("a", {**one, "generation_id": -1})


def a_commit_while_others_join(group: Group) -> None:
    first = group.joined()
    group.send_second("b")
    group.heartbeat_until("a", first, REBALANCE_IN_PROGRESS)
    group.commit(4, generation=first["generation_id"], member=text(first["member_id"]))
    group.sync("a", first)
    group.describe()
    group.fetch(TOPIC)


def the_leader_joins_again(group: Group) -> None:
    me = group.joined()
    again = group.join(member=text(me["member_id"]))
    group.sync("a", again, {text(again["member_id"]): b"another"})
    group.describe()


def a_member_joins_again_with_other_metadata(group: Group) -> None:
    me = group.joined()
    group.join(member=text(me["member_id"]), protocols=[{"name": "range", "metadata": metadata(b"other")}])


def a_follower_joins_again_unchanged(group: Group) -> None:
    one, two = group.two()
    waiting = group.send_sync("b", two)
    group.sync("a", one, {text(one["member_id"]): b"share a", text(two["member_id"]): b"share b"})
    waiting.answer()
    group.send_join("b", text(two["member_id"])).answer()
    group.heartbeat("b", two)


def strangers_to_a_group(group: Group) -> None:
    me = group.joined()
    stranger = {**me, "member_id": b"a stranger"}
    group.heartbeat("b", stranger)
    group.sync("b", stranger)
    group.leave("b", "a stranger")
    group.send_join("b", "a stranger").answer()
    group.commit(generation=me["generation_id"], member="a stranger")
    group.commit()
    group.commit(generation=me["generation_id"])
    group.commit(member=text(me["member_id"]))
    group.describe()


def requests_to_a_group_that_is_not_there(group: Group) -> None:
    nobody = {"generation_id": 1, "member_id": b"nobody"}
    group.describe()
    group.heartbeat("a", nobody)
    group.sync("a", nobody)
    group.leave("a", "nobody")
    group.commit(generation=1, member="nobody")
    group.commit(member="nobody")
    group.commit(generation=1)
    group.fetch(TOPIC)
    group.fetch()
    group.delete()
    group.delete_offsets()


def commits_without_members(group: Group) -> None:
    group.commit(9, partitions=(0, 1))
    group.fetch(TOPIC)
    group.describe()
    group.commit(3)
    group.fetch()
    group.delete_offsets()
    group.fetch(TOPIC)
    group.delete_offsets()
    group.delete_offsets("nothing of this name")
    group.delete_offsets(partitions=(0, 77))
    group.delete()
    group.delete()
    group.fetch(TOPIC)


def odd_commits(group: Group) -> None:
    group.commit(-1)
    group.commit(2**62)
    group.commit(metadata=None)
    group.commit(metadata="")
    group.commit(metadata="x" * 64)
    group.commit(metadata="x" * 65)
    group.commit(metadata="\u00e9" * 40)
    group.commit(partitions=())
    group.commit(partitions=(0, 0))
    group.commit(partitions=(0, PARTITIONS))
    group.commit(partitions=(-1,))
    group.commit(topic="nothing of this name")
    group.commit(topic="")
    group.commit(topic="a/b")
    group.commit(topic="__consumer_offsets")
    group.fetch(TOPIC)
    group.fetch(TOPIC, "nothing of this name")
    group.fetch(TOPIC, partitions=())
    group.fetch(TOPIC, partitions=(0, 0, 9, -1))
    group.fetch()


def commits_with_times(group: Group) -> None:
    group.commit(5, retention_time_ms=1)
    group.fetch(TOPIC)
    group.commit(6, retention_time_ms=86_400_000)
    group.fetch(TOPIC)


def names_of_groups(group: Group) -> None:
    for name in ODD_NAMES:
        other = Group(group.talk, name)
        answer = other.send_join().answer()
        nobody = {"generation_id": 1, "member_id": b"nobody"}
        other.heartbeat("a", nobody)
        other.sync("a", nobody)
        other.commit(11)
        other.commit(generation=1, member="nobody")
        other.fetch(TOPIC)
        other.describe()
        other.delete_offsets()
        other.leave("a", answer["member_id"].decode() if isinstance(answer, dict) else "nobody")
        group.talk.ask("FindCoordinator", key=name, coordinator_keys=[name])
        other.delete()


def several_groups_at_once(group: Group) -> None:
    names = [group.name, f"{group.name}-2", "", group.name]
    group.commit()
    group.talk.ask("DescribeGroups", groups=names)
    wanted = [{"group_id": name, "topics": None} for name in names[:3]]
    group.talk.ask("OffsetFetch", version=8, groups=wanted)
    group.talk.ask("FindCoordinator", version=4, coordinator_keys=names)
    group.talk.ask("DeleteGroups", groups_names=names)
    group.talk.ask("DescribeGroups", groups=[])
    group.talk.ask("DeleteGroups", groups_names=[])


def sessions_out_of_bounds(group: Group) -> None:
    for session in (0, -1, 1_800_001, 2**31 - 1):
        group.send_join(session_timeout_ms=session).answer()
    group.describe()


def protocols_that_do_not_fit(group: Group) -> None:
    group.send_join(protocols=[]).answer()
    group.send_join(protocol_type="").answer()
    group.joined()
    group.send_join("b", protocol_type="connect").answer()
    group.send_join("b", protocols=[ROUND_ROBIN]).answer()
    group.send_join("b", protocols=[]).answer()
    group.send_join("b", protocol_type="").answer()
    group.describe()


def a_member_changes_to_what_does_not_fit(group: Group) -> None:
    me = group.joined()
    member = text(me["member_id"])
    group.send_join("a", member, protocol_type="connect").answer()
    group.send_join("a", member, protocols=[]).answer()
    group.send_join("a", member, protocols=[ROUND_ROBIN]).answer()


def syncs_of_another_protocol(group: Group) -> None:
    me = group.join()
    group.sync("a", me, protocol_type="connect")
    group.sync("a", me, protocol_name="roundrobin")
    group.sync("a", me, protocol_type=None, protocol_name=None)
    group.sync("a", me)
    group.describe()


def the_vote_on_a_protocol(group: Group) -> None:
    both = [*({"name": "range", "metadata": metadata(b"r")}, ROUND_ROBIN)]
    first = group.joined(protocols=both)
    pending = group.send_second("b", protocols=both[::-1])
    group.heartbeat_until("a", first, REBALANCE_IN_PROGRESS)
    again = group.send_join("a", text(first["member_id"]), protocols=both[::-1])
    again.answer()
    pending.answer()


def groups_that_are_no_consumers(group: Group) -> None:
    group.joined(protocol_type="connect", protocols=[{"name": "default", "metadata": b"m"}])
    group.describe()
    group.delete_offsets()
    group.listed()


def groups_by_their_state(group: Group) -> None:
    Group(group.talk, f"{group.name} that is empty").commit()
    group.joined()
    Group(group.talk, f"{group.name} that joins").send_join()
    Group(group.talk, f"{group.name} before its sync").join("b")
    group.listed()
    for state in (
        "Stable",
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Dead",
        "stable",
        "nothing",
        "",
    ):
        group.listed(state)
    group.listed("Stable", "Empty")


def a_group_that_is_full(group: Group) -> None:
    first = group.joined()
    pending = [group.send_second(by) for by in ("b", "c", "d")]
    group.talk.until(
        "DescribeGroups", lambda answer: len(answer["groups"][0]["members"]) == 4, groups=[group.name]
    )
    group.send_join("a", text(first["member_id"])).answer()
    for one in pending:
        one.answer()
    group.send_join("e").answer()


def a_member_that_leaves_makes_the_others_join(group: Group) -> None:
    one, two = group.two()
    waiting = group.send_sync("b", two)
    group.sync("a", one, {text(one["member_id"]): b"share a"})
    waiting.answer()
    group.leave("b", text(two["member_id"]))
    group.heartbeat_until("a", one, REBALANCE_IN_PROGRESS)
    again = group.join("a", text(one["member_id"]))
    group.sync("a", again, {text(again["member_id"]): b"all"})
    group.describe()


def a_sync_that_waits_is_told_of_the_next_round(group: Group) -> None:
    one, two = group.two()
    waiting = group.send_sync("b", two)
    group.leave("a", text(one["member_id"]))
    waiting.answer()
    group.describe()


def deletion_of_groups_with_members(group: Group) -> None:
    me = group.joined(protocols=[{"name": "range", "metadata": SUBSCRIBED}])
    group.commit(generation=me["generation_id"], member=text(me["member_id"]))
    group.delete()
    group.delete_offsets()
    group.delete_offsets("nothing of this name")
    group.fetch(TOPIC)
    group.leave("a", text(me["member_id"]))
    group.delete_offsets()
    group.delete()
    group.describe()


def metadata_that_no_consumer_wrote(group: Group) -> None:
    me = group.joined(protocols=[{"name": "range", "metadata": b"\x00"}])
    group.commit(generation=me["generation_id"], member=text(me["member_id"]))
    group.delete_offsets()
    group.describe()


def sessions_that_end(group: Group) -> None:
    me = group.joined(session_timeout_ms=400, rebalance_timeout_ms=400)
    group.talk.until(
        "DescribeGroups", lambda answer: answer["groups"][0]["group_state"] == b"Empty", groups=[group.name]
    )
    group.heartbeat("a", me)
    group.commit(generation=me["generation_id"], member=text(me["member_id"]))
    group.commit()
    group.joined()


GROUP_DIALOGUES: Final[tuple[Dialogue, ...]] = (
    a_commit_between_join_and_sync,
    a_commit_while_others_join,
    a_first_join_without_an_id,
    a_follower_joins_again_unchanged,
    a_follower_syncs_with_assignments,
    a_group_that_is_full,
    a_late_commit_of_the_last_generation,
    a_member_changes_to_what_does_not_fit,
    a_member_joins_again_with_other_metadata,
    a_member_that_leaves_makes_the_others_join,
    a_sync_that_waits_is_told_of_the_next_round,
    an_id_that_is_handed_out_and_leaves_before_it_joins,
    assignments_that_name_strangers,
    commits_with_times,
    commits_without_members,
    deletion_of_groups_with_members,
    groups_by_their_state,
    groups_that_are_no_consumers,
    metadata_that_no_consumer_wrote,
    names_of_groups,
    odd_commits,
    one_member_from_join_to_leave,
    protocols_that_do_not_fit,
    requests_to_a_group_that_is_not_there,
    sessions_out_of_bounds,
    sessions_that_end,
    several_groups_at_once,
    strangers_to_a_group,
    syncs_of_another_protocol,
    the_leader_joins_again,
    the_vote_on_a_protocol,
    two_members_share_a_generation,
)
