"""Whether a member may write to partitions: the word of the coordinator that their leaders ask for (KIP-890).

Unknown, ended and unregistered are refused for good, so that nothing late can open a transaction in a
partition after the member's marker was written there. So are partitions of a topic that was made again:
markers go to the topic that was registered.
"""

from sparklog.core.transaction_coordinator.requests import VerifyPartitions
from sparklog.core.transaction_coordinator.responses import PartitionAnswers
from sparklog.core.transaction_coordinator.transitions import found_in
from sparklog.core.write_coordinator.app import App
from sparklog.model.errors import ErrorCode
from sparklog.model.write_ids import MEMBER_EPOCH, write_and_member
from sparklog.model.write_outcomes import MemberState


def verified(app: App | None, request: VerifyPartitions) -> PartitionAnswers:
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
