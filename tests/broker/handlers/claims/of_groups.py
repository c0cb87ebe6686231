"""Claims of members, generations and instances of a group."""

import itertools

from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.find_coordinator import GROUP_KEY
from sparklog.wire.messages.groups.heartbeat import HeartbeatRequest
from sparklog.wire.messages.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sparklog.wire.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity
from sparklog.wire.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from sparklog.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from sparklog.wire.messages.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from sparklog.wire.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.broker.handlers.transactions.conftest import RETRIED, TransactionalProducer
from tests.waiting import until

NONE = ErrorCode.none
numbers = itertools.count()


class Member:
    """The only member of a group, with an instance id if it is static."""

    def __init__(self, wire, group_id, instance_id=None):
        self.wire, self.group_id, self.instance_id = wire, group_id, instance_id
        self.member_id, self.generation = "", -1

    @property
    def identity(self):
        return {
            "group_id": self.group_id,
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance_id,
        }

    def call(self, request):
        return self.wire.call(self.wire.coordinator(self.group_id, GROUP_KEY), request)

    def join(self):
        """Become the leader of the next generation, or say the error."""
        for _ in range(2):  # a member that is not static is given an id first
            answer = self.call(
                JoinGroupRequest(
                    group_id=self.group_id,
                    session_timeout_ms=60_000,
                    rebalance_timeout_ms=60_000,
                    member_id=self.member_id,
                    group_instance_id=self.instance_id,
                    protocol_type="consumer",
                    protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\x01")],
                )
            )
            if answer.error_code is not ErrorCode.member_id_required:
                break
            self.member_id = answer.member_id
        if answer.error_code is NONE:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer.error_code

    def sync(self):
        given = [SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"all")]
        names = {"protocol_type": "consumer", "protocol_name": "range"}
        return self.call(SyncGroupRequest(**self.identity, **names, assignments=given)).error_code

    def heartbeat(self):
        return self.call(HeartbeatRequest(**self.identity)).error_code

    def leave(self):
        member = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        answer = self.call(LeaveGroupRequest(group_id=self.group_id, members=[member]))
        return answer.members[0].error_code if answer.error_code is NONE else answer.error_code

    def commit(self, offset):
        identity = self.identity
        generation = identity.pop("generation_id")
        partitions = [OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
        request = OffsetCommitRequest(
            **identity,
            generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)],
        )
        return self.call(request).topics[0].partitions[0].error_code

    def commit_in_transaction(self, offset):
        producer = TransactionalProducer(self.wire)
        assert producer.init() is NONE
        assert producer.add_offsets(self.group_id) is NONE
        partitions = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
        topics = [TxnOffsetCommitRequestTopic(name="t", partitions=partitions)]
        request = TxnOffsetCommitRequest(**self.identity, **producer.identity, topics=topics)
        (error,) = until(lambda: self._unless_retried(request))
        assert producer.end(commits=True) is NONE
        return error

    def _unless_retried(self, request):
        error = self.call(request).topics[0].partitions[0].error_code
        return () if error in RETRIED else (error,)

    def committed(self):
        topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
        groups = [OffsetFetchRequestGroup(group_id=self.group_id, topics=topics)]
        return self.call(OffsetFetchRequest(groups=groups)).groups[0].topics[0].partitions[0].committed_offset


class LivingMember:
    """The owner is in its second generation, and has committed 5. Its group had another member before."""

    instance_id: str | None = None

    def __init__(self, cluster, wire):
        if "t" not in cluster.client.metadata().topics:
            cluster.create_topic("t")
        self.wire, self.group_id = wire, f"group-{next(numbers)}"
        gone = self.member()
        assert (gone.join(), gone.sync(), self.end_of(gone)) == (NONE, NONE, NONE)
        self.gone_id = gone.member_id
        self.owner = self.member()
        assert (self.owner.join(), self.owner.sync(), self.owner.commit(5)) == (NONE, NONE, NONE)
        self.other = Member(wire, f"{self.group_id}-of-another")
        assert (self.other.join(), self.other.sync()) == (NONE, NONE)

    def member(self):
        return Member(self.wire, self.group_id, self.instance_id)

    def end_of(self, member):
        return member.leave()

    def claimant(self, claim):
        owner = self.owner
        generation, member_id, instance_id = {
            "a member that was never given": (owner.generation, "nobody", owner.instance_id),
            "a member of another group": (owner.generation, self.other.member_id, owner.instance_id),
            "a member that has left": (owner.generation, self.gone_id, owner.instance_id),
            "the member before it": (owner.generation, self.gone_id, owner.instance_id),
            "an instance that was never given": (owner.generation, owner.member_id, "nobody"),
            "a generation that was never given": (owner.generation + 1, owner.member_id, owner.instance_id),
            "an old generation": (owner.generation - 1, owner.member_id, owner.instance_id),
            "no member": (-1, "", None),
            "the owner as a whole": (owner.generation, owner.member_id, owner.instance_id),
        }[claim]
        claimant = Member(self.wire, self.group_id, instance_id)
        claimant.generation, claimant.member_id = generation, member_id
        return claimant

    def join(self, claim):
        return self.claimant(claim).join()

    def sync(self, claim):
        return self.claimant(claim).sync()

    def heartbeat(self, claim):
        return self.claimant(claim).heartbeat()

    def leave(self, claim):
        return self.claimant(claim).leave()

    def commit(self, claim):
        return self.claimant(claim).commit(99)

    def commit_in_transaction(self, claim):
        return self.claimant(claim).commit_in_transaction(99)

    def goes_on(self):
        assert self.owner.heartbeat() is NONE
        assert self.owner.committed() == 5
        assert self.owner.commit(6) is NONE
        assert self.owner.committed() == 6
        assert self.other.heartbeat() is NONE


class StaticMember(LivingMember):
    """The owner came after another process under the same instance id, which did not leave."""

    instance_id = "i"

    def end_of(self, member):
        return NONE
