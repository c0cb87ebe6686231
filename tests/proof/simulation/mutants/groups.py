"""Bugs of groups: who may commit, and when."""

from dataclasses import replace
from typing import Any, Final

from simulation.mutants.mutant import Mutant, Switch
from simulation.plans.faults import Hunt
from sparklog.core.coordinator.actions import Token
from sparklog.core.group import group_machine
from sparklog.core.group.group import Group
from sparklog.core.group.members.member_checks import member_error
from sparklog.core.group.offsets import commits
from sparklog.core.group.requests import GroupRequest, Heartbeat, OffsetCommit
from sparklog.core.group.turn import Turn
from sparklog.model.errors import ErrorCode


def _generations_are_not_checked(switch: Switch) -> None:
    """Members commit whatever the generation is that they believe in."""

    def generation_error(
        group: Group, generation_id: int, member_id: str, group_instance_id: str | None
    ) -> ErrorCode:
        return member_error(group, member_id, group_instance_id)

    switch.instead(commits, "generation_error", generation_error)


def _commits_before_the_assignment_count(switch: Switch) -> None:
    """A member commits between its join and its assignment."""

    def commit_error(original: Any) -> Any:
        def mutated(group: Group | None, request: OffsetCommit) -> ErrorCode:
            error: ErrorCode = original(group, request)
            return ErrorCode.none if error is ErrorCode.rebalance_in_progress else error

        return mutated

    switch.method(commits, "_commit_error", commit_error)


def _twins_are_not_fenced(switch: Switch) -> None:
    """Who has an instance id is its member, whatever member id it brings."""

    def answer(original: Any) -> Any:
        def mutated(token: Token, request: GroupRequest, turn: Turn) -> None:
            if isinstance(request, Heartbeat | OffsetCommit):
                group = turn.state.groups.get(request.group_id)
                members = {} if group is None else group.static_members
                current = members.get(request.group_instance_id or "")
                if current is not None:
                    request = replace(request, member_id=current)
            original(token, request, turn)

        return mutated

    switch.method(group_machine, "_answer", answer)


GROUPS: Final[tuple[Mutant, ...]] = (
    Mutant(
        "generations-are-not-checked",
        "commits without a fence",
        "a member that missed a rebalance overwrites the offsets of its successor",
        30,
        _generations_are_not_checked,
        Hunt(kinds=("kill broker",), groups=1.0),
    ),
    Mutant(
        "commits-before-the-assignment-count",
        "commits during a rebalance",
        "a member overwrites the offsets of partitions that it may not be given",
        20,
        _commits_before_the_assignment_count,
        Hunt(kinds=("kill broker",), groups=1.0),
        is_quick=True,
    ),
    Mutant(
        "twins-are-not-fenced",
        "KIP-345 without its fence",
        "two processes with one instance id commit for the same partitions",
        20,
        _twins_are_not_fenced,
        Hunt(kinds=("kill broker",), groups=1.0),
    ),
)
