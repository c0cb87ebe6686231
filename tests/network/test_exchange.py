import pytest

from sparklog.core.security.requester import ANONYMOUS
from sparklog.network.exchange import Exchange, RequestContext


class RecordingPath:
    def __init__(self):
        self.calls = []

    def send_reply(self, exchange, parts, throttle_ms):
        self.calls.append(("reply", tuple(parts), throttle_ms))

    def let_next_begin(self, exchange):
        self.calls.append(("let_next_begin",))

    def disconnect(self):
        self.calls.append(("disconnect",))

    def identify(self, principal):
        self.calls.append(("identify", principal))


@pytest.fixture
def path():
    return RecordingPath()


@pytest.fixture
def exchange(path):
    context = RequestContext(connection_id=7, client_host="host", listener="PLAINTEXT", received_ms=5)
    return Exchange(memoryview(bytearray(b"request")), context, path)


@pytest.mark.parametrize("first", ["reply", "no_reply", "close"])
@pytest.mark.parametrize("second", ["reply", "no_reply", "close"])
def test_a_second_answer_is_a_bug_and_changes_nothing(exchange, path, first, second):
    answers = {
        "reply": lambda: exchange.reply([b"x"]),
        "no_reply": exchange.no_reply,
        "close": exchange.close,
    }
    assert not exchange.is_answered
    answers[first]()
    assert exchange.is_answered
    with pytest.raises(
        RuntimeError, match=f"{second} for a request of connection 7 that was answered already"
    ):
        answers[second]()
    assert len(path.calls) == 1


def test_the_answers_reach_the_connection(exchange, path):
    exchange.identify("User:alice")
    exchange.reply([b"x"], throttle_ms=20)
    assert path.calls == [("identify", "User:alice"), ("reply", (b"x",), 20)]


def test_abandoning_closes_before_and_after_an_answer(exchange, path):
    exchange.reply([b"x"])
    exchange.abandon()
    assert path.calls[-1] == ("disconnect",)
    assert exchange.is_answered


def test_nobody_is_named_before_authentication(exchange):
    assert exchange.context.principal == ANONYMOUS == "User:ANONYMOUS"
