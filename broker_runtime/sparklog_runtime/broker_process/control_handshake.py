"""How both ends of a control connection prove that they know the run's token. It never crosses the network.

    supervisor to broker    challenge   nonce: 32 random bytes, in hex
    broker to supervisor    proof       nonce: the broker's own, mac
    supervisor to broker    proof       mac

A mac is HMAC-SHA256, keyed with the token, over the side's name and both nonces. The names keep one side's
proof from serving as the other's, the nonces keep a recorded proof from serving twice. A broker obeys nobody
who has not proved it: a process that got hold of the supervisor's port could send it anywhere.

The supervisor answers a wrong proof by closing the connection. A side that has shown no proof within
``TIMEOUT_S`` is disconnected.
"""

import hashlib
import hmac
import re
import secrets
from typing import Final

from sparklog_runtime.broker_process.control_channel import (
    ControlConnection,
    ControlError,
    Message,
    require_str,
)

TIMEOUT_S: Final = 10.0

_NONCE_BYTES: Final = 32
_SHOWN_MAX: Final = 80
_NONCE: Final = re.compile(r"[0-9a-f]{64}")
_SUPERVISOR: Final = b"supervisor"
_BROKER: Final = b"broker"


def admit(connection: ControlConnection, token: str) -> bool:
    """The supervisor's part. False if the peer ended the connection; ControlError if it lacks the token."""
    challenge = secrets.token_hex(_NONCE_BYTES)
    connection.send({"type": "challenge", "nonce": challenge})
    proof = connection.receive(TIMEOUT_S)
    if proof is None:
        return False
    answer = _nonce(proof, "proof")
    if not _proves(proof, _mac(token, _BROKER, challenge, answer)):
        raise ControlError("it did not prove that it knows this run's token")
    connection.send({"type": "proof", "mac": _mac(token, _SUPERVISOR, challenge, answer).decode()})
    return True


def join(connection: ControlConnection, token: str) -> None:
    """The broker's part; ControlError if the peer refuses us, or is not the supervisor of this run."""
    challenge = _nonce(_received(connection), "challenge")
    answer = secrets.token_hex(_NONCE_BYTES)
    mac = _mac(token, _BROKER, challenge, answer).decode()
    connection.send({"type": "proof", "nonce": answer, "mac": mac})
    proof = _received(connection)
    if not _proves(proof, _mac(token, _SUPERVISOR, challenge, answer)):
        raise ControlError(
            f"the process at {connection.peer_name} did not prove that it is the supervisor of this run"
        )


def _received(connection: ControlConnection) -> Message:
    message = connection.receive(TIMEOUT_S)
    if message is None:
        raise ControlError(f"the supervisor at {connection.peer_name} refused this broker process")
    return message


def _nonce(message: Message, kind: str) -> str:
    if message["type"] != kind:
        raise ControlError(f"a control connection does not begin with {message['type'][:_SHOWN_MAX]!r}")
    nonce = require_str(message, "nonce")
    if _NONCE.fullmatch(nonce) is None:
        raise ControlError(f"control message {kind!r}: nonce={nonce[:_SHOWN_MAX]!r} is not 32 bytes in hex")
    return nonce


def _proves(proof: Message, mac: bytes) -> bool:
    shown = require_str(proof, "mac").encode("utf-8", "surrogatepass")  # JSON may have half a character
    return hmac.compare_digest(mac, shown)


def _mac(token: str, side: bytes, challenge: str, answer: str) -> bytes:
    text = b" ".join((side, challenge.encode(), answer.encode()))
    return hmac.new(token.encode(), text, hashlib.sha256).hexdigest().encode()
