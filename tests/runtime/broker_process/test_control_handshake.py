"""Both ends of a control connection prove that they know the token, and neither sends it."""

import socket
import threading

import pytest

from sparklog_runtime.broker_process import control_handshake
from sparklog_runtime.broker_process.control_channel import ControlConnection, ControlError
from sparklog_runtime.broker_process.control_handshake import admit, join

TOKEN = "the-token-of-this-run"
NONCE = "ab" * 32


@pytest.fixture
def ends():
    """The supervisor's and the broker's end of one connection."""
    made = _ends()
    yield made
    for end in made:
        end.close()


def _ends():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        return tuple(ControlConnection.accept(end, 5.0) for end in (near, listener.accept()[0]))


def _beside(work, *arguments):
    """Do the work on another thread; its outcome is the list's one item."""
    outcome = []

    def run():
        try:
            outcome.append(work(*arguments))
        except (ControlError, OSError) as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def test_two_sides_with_the_token_admit_each_other(ends):
    supervisor, broker = ends
    thread, outcome = _beside(admit, supervisor, TOKEN)
    join(broker, TOKEN)
    thread.join()
    assert outcome == [True]


def test_the_token_is_in_no_byte_of_the_handshake(ends):
    supervisor, broker = ends
    heard = []
    receive = ControlConnection.receive

    class Recording:
        def __init__(self, inner):
            self._inner = inner

        def receive(self, timeout_s):
            heard.append(message := receive(self._inner, timeout_s))
            return message

        def __getattr__(self, name):
            return getattr(self._inner, name)

    thread, _ = _beside(admit, Recording(supervisor), TOKEN)
    join(Recording(broker), TOKEN)
    thread.join()
    assert [message["type"] for message in heard] == ["challenge", "proof", "proof"]
    assert TOKEN not in str(heard)


def test_a_broker_with_another_token_is_refused(ends):
    supervisor, broker = ends
    thread, outcome = _beside(join, broker, "a guess")
    with pytest.raises(ControlError, match="did not prove that it knows this run's token"):
        admit(supervisor, TOKEN)
    supervisor.close()
    thread.join()
    assert "refused this broker process" in str(outcome[0])


def test_a_broker_does_not_obey_a_process_that_has_only_the_port(ends):
    impostor, broker = ends
    thread, outcome = _beside(join, broker, TOKEN)
    impostor.send({"type": "challenge", "nonce": NONCE})
    proof = impostor.receive()
    impostor.send({"type": "proof", "mac": proof["mac"]})  # the broker's own, back again
    thread.join()
    assert isinstance(outcome[0], ControlError)
    assert "did not prove that it is the supervisor of this run" in str(outcome[0])


def test_a_proof_with_half_a_character_is_none(ends):
    supervisor, stranger = ends
    stranger.send({"type": "proof", "nonce": NONCE, "mac": "\ud800"})
    with pytest.raises(ControlError, match="did not prove that it knows this run's token"):
        admit(supervisor, TOKEN)


def test_a_strangers_words_fill_no_log(ends):
    supervisor, stranger = ends
    stranger.send({"type": "x" * 60_000})
    with pytest.raises(ControlError, match="does not begin with 'xxx") as refused:
        admit(supervisor, TOKEN)
    assert len(str(refused.value)) < 200


def test_a_recorded_proof_does_not_serve_twice(ends):
    supervisor, broker = ends
    thread, _ = _beside(admit, supervisor, TOKEN)
    challenge = broker.receive()
    broker.close()
    thread.join()
    recorded = _proof_for(challenge["nonce"])
    near, far = _ends()
    thread, outcome = _beside(admit, near, TOKEN)
    assert far.receive()["nonce"] != challenge["nonce"]
    far.send(recorded)
    thread.join()
    assert "did not prove" in str(outcome[0])
    near.close()
    far.close()


def _proof_for(nonce):
    """What a broker with the token answers to this challenge."""
    supervisor, broker = _ends()
    thread, _ = _beside(join, broker, TOKEN)
    supervisor.send({"type": "challenge", "nonce": nonce})
    proof = supervisor.receive()
    supervisor.close()
    thread.join()
    broker.close()
    return proof


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"type": "hello", "slot": 0}, "does not begin with 'hello'"),
        ({"type": "proof", "mac": ""}, "nonce=None is not a string"),
        ({"type": "proof", "nonce": "short", "mac": ""}, "nonce='short' is not 32 bytes in hex"),
        ({"type": "proof", "nonce": NONCE.upper(), "mac": ""}, "is not 32 bytes in hex"),
        ({"type": "proof", "nonce": NONCE, "mac": 5}, "mac=5 is not a string"),
        ({"type": "proof", "nonce": NONCE, "mac": "é"}, "did not prove"),
    ],
)
def test_what_is_no_proof_is_refused_with_the_reason(ends, message, why):
    supervisor, broker = ends
    broker.send(message)
    with pytest.raises(ControlError, match=why):
        admit(supervisor, TOKEN)


def test_a_peer_that_leaves_before_its_proof_is_no_error(ends):
    supervisor, broker = ends
    broker.close()
    assert admit(supervisor, TOKEN) is False


def test_a_silent_peer_is_waited_for_only_so_long(ends, monkeypatch):
    monkeypatch.setattr(control_handshake, "TIMEOUT_S", 0.01)
    supervisor, broker = ends
    with pytest.raises(TimeoutError):
        admit(supervisor, TOKEN)
    assert broker.receive()["type"] == "challenge"
    with pytest.raises(TimeoutError):
        join(broker, TOKEN)
