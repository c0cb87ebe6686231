"""The coordinator's confirmation that a member may write to partitions, which their leaders ask for
(KIP-890).

Unknown and ended members, and unregistered partitions, are refused for good, so that no late batch opens a
transaction in a partition after the member's marker. Partitions of a recreated topic are refused, too,
because markers go to the registered topic.
"""

from sparklog.core.transaction_coordinator.requests import VerifyPartitions
from sparklog.core.transaction_coordinator.responses import PartitionAnswers
from sparklog.core.transaction_coordinator.transitions import found_in
from sparklog.core.write_coordinator.app import App
from sparklog.model.errors import ErrorCode
from sparklog.model.write_ids import MEMBER_EPOCH, write_and_member
from sparklog.model.write_outcomes import MemberState


def verified(app: App | None, request: VerifyPartitions) -> PartitionAnswers:
    """The answer for each partition; an error for all unless the member is working."""
    write_number, number = write_and_member(request.producer_id)
    member = None
    if app is not None and app.head.write_number == write_number:
        member = app.members.get(number)
    if app is None or member is None:
        return request.refused(ErrorCode.invalid_producer_id_mapping)
    is_working = member.state is MemberState.WORKING and app.decision(number) is None
    if not is_working or request.producer_epoch != MEMBER_EPOCH:
        return request.refused(ErrorCode.invalid_txn_state)
    present = [topic for topic in member.topics if topic.named not in app.lost_topics]
    return found_in(present, request)
