"""Groups without progress, and groups that lost what they had not read. PURE."""

import shlex
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, LateGroup, Part
from sparklog.cli.cluster.doctor.doctor_finding import NAMED_MAX, Finding, Severity, named
from sparklog.client.group.group_admin import EMPTY
from sparklog.client.group.lag_look import PartitionLag

NAME: Final = "groups"


def examine_groups(facts: ClusterFacts) -> Iterator[Finding]:
    for lag in (_STANDING, _READING_ON, _ABANDONED):
        groups = [one for one in facts.groups if one.late and _lag_of(one) is lag]
        if groups:
            yield _late(lag, groups, facts.options)
    deleted = [one for one in facts.groups if one.deleted]
    for severity, groups in (
        (Severity.warning, [one for one in deleted if not _is_abandoned(one)]),
        (Severity.note, [one for one in deleted if _is_abandoned(one)]),
    ):
        if groups:
            yield _deleted(severity, groups, facts.options)
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


class _Lag(NamedTuple):
    """What is said of groups that lag in one way. ``remedy`` takes their names and the command's options."""

    severity: Severity
    value: str
    harm: str
    remedy: str


_STANDING: Final = _Lag(
    Severity.warning,
    "nothing was committed between two looks",
    "results stand still, and retention may delete what has not been read",
    "sparklog groups describe {names} {options} names the members: read their logs; a hanging transaction "
    "comes first",
)
_READING_ON: Final = _Lag(
    Severity.note,
    "it reads on",
    "results are late",
    "sparklog groups describe {names} {options}; if the lag grows, more members, then more partitions",
)
_ABANDONED: Final = _Lag(
    Severity.note,
    "nobody reads",
    "what retention deletes meanwhile is never read",
    "start the consumers, or: sparklog groups delete {names} {options}",
)


def _lag_of(group: LateGroup) -> _Lag:
    if group.moved:
        return _READING_ON
    return _ABANDONED if _is_abandoned(group) else _STANDING


def _is_abandoned(group: LateGroup) -> bool:
    return group.group_state == EMPTY and not group.query


def _late(lag: _Lag, groups: Sequence[LateGroup], options: str) -> Finding:
    return Finding(
        NAME,
        lag.severity,
        _subject(groups),
        f"{_unread(groups)}; {lag.value}",
        lag.harm,
        lag.remedy.format(names=_words(groups), options=options),
    )


def _deleted(severity: Severity, groups: Sequence[LateGroup], options: str) -> Finding:
    return Finding(
        NAME,
        severity,
        _subject(groups),
        f"{_places([one for group in groups for one in group.deleted])} begin after the committed offset",
        "records were deleted unread; reading begins anew as auto.offset.reset says",
        f"longer retention, or faster members: sparklog groups describe {_words(groups)} {options}",
    )


def _unread(groups: Sequence[LateGroup]) -> str:
    late = [one for group in groups for one in group.late]
    states = sorted({group.group_state for group in groups})
    return (
        f"{sum(one.lag for one in late)} records of {_places(late)} are unread, some for minutes; "
        f"state {', '.join(states)}"
    )


def _places(lags: Sequence[PartitionLag]) -> str:
    return named("partition", list(dict.fromkeys(one.topic_partition for one in lags)))


def _words(groups: Sequence[LateGroup]) -> str:
    """The names that the subject has, in a command to paste: clients choose them, and a shell would obey
    some.
    """
    return " ".join(shlex.quote(group.group_id) for group in groups[:NAMED_MAX])


def _subject(groups: Sequence[LateGroup]) -> str:
    return named(
        "group", [f"{one.group_id} (query {one.query})" if one.query else one.group_id for one in groups]
    )


GROUPS: Final = Check(
    NAME, (Part.groups,), "no group has unread records that are minutes old", examine_groups
)
