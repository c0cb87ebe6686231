"""Groups without progress, and groups that lost what they had not read. PURE."""

import shlex
from collections.abc import Iterator
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, LateGroup, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity, named
from sparklog.client.group.group_admin import EMPTY

NAME: Final = "groups"
SHOWN_MAX: Final = 20


def examine_groups(facts: ClusterFacts) -> Iterator[Finding]:
    for group in facts.groups[:SHOWN_MAX]:
        if group.late:
            yield _late(group, facts.options)
        if group.deleted:
            yield _deleted(group, facts.options)
    left = len(facts.groups) - SHOWN_MAX
    if left > 0:
        yield Finding(
            NAME,
            Severity.warning,
            f"{left} more groups",
            "have unread records that are minutes old, or lost some",
            "as above",
            f"sparklog groups list {facts.options}",
        )
    if facts.groups_unseen:
        reason = next(iter(facts.groups_unseen.values()))
        yield Finding(
            NAME,
            Severity.note,
            named("group", list(facts.groups_unseen)),
            f"not looked at: {reason}",
            "whether they read is unknown",
            f"sparklog groups list {facts.options} shows them",
        )


def _late(group: LateGroup, options: str) -> Finding:
    unread = sum(one.lag for one in group.late)
    places = named("partition", [one.topic_partition for one in group.late])
    value = f"{unread} records of {places} are unread, some for minutes; state {group.group_state}"
    if group.moved:
        return Finding(
            NAME,
            Severity.note,
            _subject(group),
            f"{value}; it reads on",
            "its results are late",
            f"sparklog groups describe {_word(group)} {options}; if the lag grows, more members, "
            "then more partitions",
        )
    if group.group_state == EMPTY and not group.query:
        return Finding(
            NAME,
            Severity.note,
            _subject(group),
            f"{value}; nobody reads",
            "what retention deletes meanwhile it never reads",
            f"start its consumers, or: sparklog groups delete {_word(group)} {options}",
        )
    return Finding(
        NAME,
        Severity.warning,
        _subject(group),
        f"{value}; it has committed nothing between two looks",
        "its results stand still, and retention may delete what it has not read",
        f"sparklog groups describe {_word(group)} {options} names its members: read their logs; "
        "a hanging transaction comes first",
    )


def _deleted(group: LateGroup, options: str) -> Finding:
    reader = Severity.note if group.group_state == EMPTY and not group.query else Severity.warning
    places = named("partition", [one.topic_partition for one in group.deleted])
    return Finding(
        NAME,
        reader,
        _subject(group),
        f"{places} begin after its committed offset",
        "it has not read records that were deleted; it begins anew as auto.offset.reset says",
        f"longer retention, or faster members: sparklog groups describe {_word(group)} {options}",
    )


def _word(group: LateGroup) -> str:
    """Its name in a command to paste: clients choose names, and a shell would obey some."""
    return shlex.quote(group.group_id)


def _subject(group: LateGroup) -> str:
    return f"group {group.group_id}" + (f" (query {group.query})" if group.query else "")


GROUPS: Final = Check(
    NAME, (Part.groups,), "no group has unread records that are minutes old", examine_groups
)
