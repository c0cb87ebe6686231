"""Claims of producer ids and epochs, under a transactional id."""

import itertools

from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.wire.messages.data.init_producer_id import InitProducerIdRequest
from sparklog.wire.messages.discovery.find_coordinator import GROUP_KEY
from sparklog.wire.messages.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from sparklog.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from sparklog.wire.messages.transactions.end_txn import EndTxnRequest
from sparklog.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.handlers.transactions.conftest import TransactionalProducer
from tests.waiting import until

NONE = ErrorCode.none
NEVER_GIVEN = 9_999_999
numbers = itertools.count()


class OpenTransaction:
    """The owner has written ``before`` in a transaction; another producer has an id of its own."""

    def __init__(self, cluster, wire):
        self.wire = wire
        self.place = TopicPartition(f"transaction-{next(numbers)}", 0)
        self.group = f"group-of-{self.place.topic}"
        cluster.create_topic(self.place.topic)
        self.owner, self.other = TransactionalProducer(wire), TransactionalProducer(wire)
        for producer in (self.owner, self.owner, self.other):  # the owner's epoch is 1
            assert producer.init() is NONE
        assert self.owner.add(self.place) is NONE
        assert self.owner.add_offsets(self.group) is NONE
        assert self.owner.send(self.place, b"before").error_code is NONE
        assert self.owner.commit_offsets(self.group, {self.place: 3}) == {self.place: NONE}

    def claimant(self, claim):
        owner, other = self.owner, self.other
        by_claim = {
            "an id that was never given": (owner, NEVER_GIVEN, owner.producer_epoch),
            "an epoch that was never given": (owner, owner.producer_id, owner.producer_epoch + 1),
            "the owner's id under another name": (other, owner.producer_id, owner.producer_epoch),
            "another's id under the owner's name": (owner, other.producer_id, other.producer_epoch),
            "an old epoch": (owner, owner.producer_id, owner.producer_epoch - 1),
        }
        named, producer_id, producer_epoch = by_claim[claim]
        claimant = TransactionalProducer(self.wire, named.transactional_id)
        claimant.producer_id, claimant.producer_epoch = producer_id, producer_epoch
        return claimant

    def init_producer_id(self, claim):
        claimant = self.claimant(claim)
        request = InitProducerIdRequest(**claimant.identity, transaction_timeout_ms=60_000)
        return claimant.call(request, error_of=lambda answer: answer.error_code)[1]

    def add_partitions(self, claim):
        return self.claimant(claim).add(self.place)

    def verify_partitions(self, claim):
        claimant = self.claimant(claim)
        topics = [AddPartitionsToTxnTopic(name=self.place.topic, partitions=[0])]
        asked = AddPartitionsToTxnTransaction(**claimant.identity, verify_only=True, topics=topics)
        request = AddPartitionsToTxnRequest(transactions=[asked])

        def error_of(answer):
            topic = answer.results_by_transaction[0].topic_results[0]
            return topic.results_by_partition[0].partition_error_code

        return claimant.call(request, 4, error_of=error_of)[1]

    def add_offsets(self, claim):
        return self.claimant(claim).add_offsets(self.group)

    def commit_offsets(self, claim):
        (error,) = self.claimant(claim).commit_offsets(self.group, {self.place: 7}).values()
        return error

    def produce(self, claim):
        return self.claimant(claim).send(self.place, b"claimed", base_sequence=1).error_code

    def end(self, claim):
        claimant = self.claimant(claim)
        request = EndTxnRequest(**claimant.identity, committed=False)
        return claimant.call(request, error_of=lambda answer: answer.error_code)[1]

    def marker(self, claim):
        """As a coordinator sends it: the aborting end of the transaction, in its partition."""
        claimant = self.claimant(claim)
        marker = WritableTxnMarker(
            producer_id=claimant.producer_id,
            producer_epoch=claimant.producer_epoch,
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=self.place.topic, partition_indexes=[0])],
            coordinator_epoch=0,
        )
        leader = self.wire.cluster.wait_for_leader(*self.place)
        answer = self.wire.call(leader, WriteTxnMarkersRequest(markers=[marker]))
        return answer.markers[0].topics[0].partitions[0].error_code

    def goes_on(self):
        """Both commit what they write: the owner in its open transaction, the other one in its first."""
        assert self.owner.send(self.place, b"after").error_code is NONE
        assert self.owner.end(commits=True) is NONE
        assert self.committed_values(2) == [b"before", b"after"]
        until(lambda: self.committed_offset() == 3, self.committed_offset)
        assert self.other.add(self.place) is NONE
        assert self.other.send(self.place, b"of another").error_code is NONE
        assert self.other.end(commits=True) is NONE
        assert self.committed_values(3) == [b"before", b"after", b"of another"]

    def committed_values(self, at_least):
        return [record.value for record in self.wire.cluster.consume(self.place.topic, at_least=at_least)]

    def committed_offset(self):
        topics = [OffsetFetchRequestTopics(name=self.place.topic, partition_indexes=[0])]
        groups = [OffsetFetchRequestGroup(group_id=self.group, topics=topics)]
        coordinator = self.wire.coordinator(self.group, GROUP_KEY)
        answer = self.wire.call(coordinator, OffsetFetchRequest(groups=groups))
        return answer.groups[0].topics[0].partitions[0].committed_offset
