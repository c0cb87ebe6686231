"""Whether a request comes from a member of the group, of the current generation."""

from sparklog.core.group.group import Group
from sparklog.model.errors import ErrorCode


def member_error(group: Group, member_id: str, group_instance_id: str | None) -> ErrorCode:
    """FENCED_INSTANCE_ID: another process has taken over the instance id (KIP-345).

    UNKNOWN_MEMBER_ID: the group has no such member, or no member with such an instance id.
    """
    if group_instance_id is not None:
        current = group.static_members.get(group_instance_id)
        if current is not None and current != member_id:
            return ErrorCode.fenced_instance_id
        if current is None:
            return ErrorCode.unknown_member_id
    return ErrorCode.none if member_id in group.members else ErrorCode.unknown_member_id


def generation_error(
    group: Group, generation_id: int, member_id: str, group_instance_id: str | None
) -> ErrorCode:
    """The errors of ``member_error``; ILLEGAL_GENERATION for a member of another generation."""
    error = member_error(group, member_id, group_instance_id)
    if error is ErrorCode.none and generation_id != group.generation_id:
        return ErrorCode.illegal_generation
    return error
