"""A coordinator of atomic writes that was elsewhere when a topic of theirs was deleted."""

import uuid

import pytest

from sparklog.core.transaction_coordinator.records import TransactionTopic
from sparklog.core.write_coordinator.requests import EndWrite, OpenWrite
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition
from sparklog.model.internal_topics import TRANSACTION_STATE_TOPIC
from sparklog.model.write_outcomes import EndOutcome, MemberState, OpenOutcome
from tests.broker.coordination.conftest import Coordinated

ANOTHER_ID = uuid.UUID(int=77)


class Writes(Coordinated):
    """A write to the topic ``events``, whose one member finishes."""

    def begin(self):
        self.serve()
        self.producer_id = self.joined(fresh_write_number=5).producer_id
        assert self.joined(producer_id=self.producer_id, state=MemberState.FINISHED).error is ErrorCode.none

    def joined(self, **fields):
        events = TransactionTopic("events", self.metadata.topic_id("events"), (0,))
        wanted = {"version": 1, "run": "r", "attempt": "a", "timeout_ms": 60_000, "is_plain": False}
        answers = self.ask(OpenWrite(app="app", topics=(events,), **wanted, **fields))
        self.follow()
        (answer,) = answers
        assert answer.outcome is OpenOutcome.MEMBER
        return answer

    def commit(self):
        """The answer, or None while it waits for the markers."""
        end = EndWrite(
            app="app", version=1, run="r", is_commit=True, is_plain=False, winners=(self.producer_id,)
        )
        answers = self.ask(end)
        self.follow()
        return answers[0] if answers else None


@pytest.fixture
def writes(tmp_path, clock, zookeeper):
    writes = Writes(tmp_path, clock, zookeeper, TopicPartition(TRANSACTION_STATE_TOPIC, 0))
    writes.begin()
    return writes


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_topic_that_was_deleted_while_nobody_coordinated_fails_the_commit_by_its_name(
    writes, is_made_again
):
    writes.become(leader=2, epoch=2)
    writes.publish(
        TRANSACTION_STATE_TOPIC, *(["events"] if is_made_again else []), ids={"events": ANOTHER_ID}
    )
    writes.serve(epoch=3)
    answer = writes.commit()
    assert (answer.outcome, answer.topic) == (EndOutcome.LOST_TOPIC, "events")


def test_a_topic_that_is_still_there_is_no_obstacle(writes):
    writes.become(leader=2, epoch=2)
    writes.publish(TRANSACTION_STATE_TOPIC, "events")
    writes.serve(epoch=3)
    assert writes.commit() is None
