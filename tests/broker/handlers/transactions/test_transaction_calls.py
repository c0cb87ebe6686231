"""Whether a connection is closed depends on the coordinator's result, and on no error code."""

from types import SimpleNamespace

from sparklog.broker.handlers.transactions import transaction_calls, txn_offset_commit
from sparklog.core.coordinator.actions import Producer
from sparklog.core.group.requests import OffsetToCommit, TransactionalOffsetCommit
from sparklog.core.group.responses import TransactionalCommitAnswer
from sparklog.core.producers.latest_connections import LATE
from sparklog.core.transaction_coordinator.responses import Answer
from sparklog.model.errors import ErrorCode
from sparklog.model.ids import TopicPartition

T0 = TopicPartition("t", 0)
LOST = ErrorCode.network_exception


class Called:
    """A call whose coordinator answers ``result``. ``done``: the replies, and "closed"."""

    def __init__(self, result):
        self.done = []
        self.version = 3
        self.header = SimpleNamespace(api_key=28)
        self.exchange = SimpleNamespace(close=lambda: self.done.append("closed"))
        self.broker = SimpleNamespace(
            coordinators=SimpleNamespace(submit=lambda topic, request, answer: answer(result))
        )

    def carefully(self, step):
        step()

    def reply(self, message):
        self.done.append(message)


def asked(result):
    call = Called(result)
    transaction_calls.ask(call, "a request", lambda answer: answer.error)
    return call.done


def committed(result):
    call = Called(result)
    commit = TransactionalOffsetCommit(
        "g", producer=Producer(7, 0), generation_id=-1, member_id="", offsets=(OffsetToCommit(T0, 5),)
    )
    txn_offset_commit._Attempts(call, "x", (T0,), {}).ask(commit)
    return call.done


def test_the_connection_of_a_late_request_is_closed():
    assert asked(LATE) == ["closed"]
    assert committed(LATE) == ["closed"]


def test_a_refusal_is_answered_even_with_the_code_of_a_lost_connection():
    assert asked(Answer(LOST)) == [LOST]
    (response,) = committed(TransactionalCommitAnswer(((T0, LOST),)))
    assert response.topics[0].partitions[0].error_code is LOST
