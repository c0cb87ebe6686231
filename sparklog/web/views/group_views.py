"""``/groups`` and ``/groups?group=NAME``: which reader lags, and by how much.

A group's name may have slashes, which proxies decode: so it stands in the query.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from sparklog.client.group.committed_offsets import fetch_committed
from sparklog.client.group.group_admin import DEAD, GroupAdmin, MemberDescription
from sparklog.client.group.lag_look import GroupLag, ends_of, query_of
from sparklog.model.ids import TopicPartition
from sparklog.web.shown_commands import of_group, shown
from sparklog.web.view_question import NothingThere, Question, page_of
from sparklog.web.viewer import Viewer

Row = dict[str, Any]
SORTS: Final[Mapping[str, Callable[[Row], Any]]] = {
    "lag": lambda row: row["lag"],
    "name": lambda row: row["group_id"],
    "state": lambda row: row["state"],
}


def groups(viewer: Viewer, question: Question) -> dict[str, object]:
    name = question.text("group")
    return _one(viewer, question, name) if name else _all(viewer, question)


def _all(viewer: Viewer, question: Question) -> dict[str, object]:
    look = viewer.lags()
    search = question.text("search").casefold()
    rows = [_row(viewer, group) for name, group in look.groups.items() if search in name.casefold()]
    sort = question.choice("sort", tuple(SORTS))
    descending = question.flag("descending") if question.text("sort") else True
    rows.sort(key=lambda row: row["group_id"])
    rows.sort(key=SORTS[sort], reverse=descending)
    return {
        **page_of(rows, question),
        "time_ms": look.time_ms,
        "failed": [{"group_id": name, "reason": reason} for name, reason in look.failed.items()],
        "left_out": look.left_out,
        "commands": [shown(viewer.options, "groups list")],
    }


def _row(viewer: Viewer, group: GroupLag) -> Row:
    listing = group.listing
    worst = max(group.partitions, key=lambda one: one.lag, default=None)
    return {
        "group_id": listing.group_id,
        "state": listing.group_state,
        "protocol_type": listing.protocol_type,
        "topics": sorted({one.topic_partition.topic for one in group.partitions})[:10],
        "lag": group.lag,
        "worst": None if worst is None or not worst.lag else str(worst.topic_partition),
        "moved_ms": viewer.history.moved_ms(listing.group_id),
        "query": group.query(),
    }


def _one(viewer: Viewer, question: Question, name: str) -> dict[str, object]:
    admin = GroupAdmin(viewer.cluster)
    group = admin.describe(name)
    if group.group_state == DEAD:
        raise NothingThere(f"there is no group {name[:250]!r}")
    committed = fetch_committed(admin.coordinator(name))
    owners = group.owners()
    partitions = sorted(committed.keys() | owners.keys())
    ends = ends_of(viewer.cluster, partitions)
    rows = [_partition(one, committed, owners, ends) for one in partitions]
    rows.sort(key=lambda row: -(row["lag"] or 0))
    queries = [query_of(one.metadata) for one in committed.values()]
    query = next((one for one in queries if one is not None), None)
    return {
        **page_of(rows, question),
        "group_id": name,
        "state": group.group_state,
        "protocol_type": group.protocol_type,
        "assignor": group.protocol_data,
        "coordinator": group.coordinator.id,
        "lag": sum(row["lag"] or 0 for row in rows),
        "moved_ms": viewer.history.moved_ms(name),
        "query": query,
        "members": [_member(member) for member in group.members[:100]],
        "member_count": len(group.members),
        "history": viewer.history.of_group(name),
        "commands": [of_group(viewer.options, name, is_query=query is not None)],
    }


def _partition(
    one: TopicPartition,
    committed: Mapping[TopicPartition, Any],
    owners: Mapping[TopicPartition, MemberDescription],
    ends: Mapping[TopicPartition, int],
) -> Row:
    offset = committed[one].offset if one in committed else None
    end = ends.get(one, -1)
    owner = owners.get(one)
    return {
        "topic": one.topic,
        "partition": one.partition,
        "committed": offset,
        "end": None if end < 0 else end,
        "lag": None if offset is None or end < 0 else max(0, end - offset),
        "member": None if owner is None else owner.client_id,
        "member_id": None if owner is None else owner.member_id,
    }


def _member(member: MemberDescription) -> Row:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "topics": sorted(member.topics)[:10],
        "partitions": len(member.partitions),
    }
