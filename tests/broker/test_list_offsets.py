"""An answer to ListOffsets and the leader epoch in it are one leader's."""

from types import SimpleNamespace

import pytest

from sparklog.broker.handlers.list_offsets import _answer, _find
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.data.list_offsets import ListOffsetsPartition, ListOffsetsRequest

LATEST, EARLIEST = -1, -2


class PartitionBeforeAnElection:
    """The leader of epoch 3 answers; before its answer is written the broker leads epoch 4."""

    leader_epoch = 3

    @property
    def reads(self):
        return self

    def leader_offset(self, current_leader_epoch, choose):
        leader = SimpleNamespace(
            leader_epoch=3, latest_offset=lambda visibility: 7, marks=SimpleNamespace(log_start_offset=2)
        )
        found = choose(leader, None)
        self.leader_epoch = 4
        return found


@pytest.mark.bug("B58", "words", "A ListOffsets answer has another leader's epoch.")
@pytest.mark.parametrize(("timestamp", "offset"), [(LATEST, 7), (EARLIEST, 2)])
def test_an_answer_has_the_epoch_of_the_leader_that_gave_it(timestamp, offset):
    call = SimpleNamespace(partition=lambda topic_partition: PartitionBeforeAnElection(), version=7)
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    answer = _answer(call, asked, _find(call, ListOffsetsRequest(replica_id=-1), "quakes", asked))
    assert (answer.offset, answer.leader_epoch) == (offset, 3)


@pytest.mark.parametrize(("timestamp", "first_version"), [(-3, 7), (-4, 8), (-5, 9)])
def test_a_special_time_is_refused_in_versions_that_do_not_know_it(timestamp, first_version):
    call = SimpleNamespace(partition=lambda topic_partition: ErrorCode.none, version=first_version - 1)
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    answer = _answer(call, asked, _find(call, ListOffsetsRequest(replica_id=-1), "quakes", asked))
    assert answer.error_code is ErrorCode.unsupported_version
