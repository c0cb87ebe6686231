"""A dialogue in which requests are sent by users who have logged in, or by strangers."""

import itertools
import time
from dataclasses import dataclass
from typing import Any, Final

from fuzz.connection import Wire
from sparklog.core.security.login.plain import plain_token
from sparklog.core.security.login.scram import SCRAM_MECHANISMS
from sparklog.core.security.login.scram_client import ScramClient
from tests.interop.differential.talk import KEYS, Said, Talk, frame_of
from tests.interop.security.personas import ADMIN, ALLOW, LITERAL, PASSWORD, USERS

HANDSHAKE_VERSION: Final = 1
AUTHENTICATE_VERSION: Final = 2
LOGIN_S: Final = 10.0
ONCE_IN_S: Final = 1.1
TOPIC_TYPE: Final = 2
OF_DESCRIBE: Final = 8
NONCE: Final = "a-nonce-of-the-client"


@dataclass(slots=True)
class SecuredTalk(Talk):
    """``by`` names a user of ``USERS``, who logs in by PLAIN when its connection is opened; ``alice/2`` is
    another connection of alice. Any other name is a stranger's connection, on which nothing was sent yet.
    """

    def _opened(self, by: str) -> Wire:
        wire = Wire(self.address)
        user = by.partition("/")[0]
        if user in USERS:
            _log_in(wire, user)
        return wire

    def note(self, what: str, found: Any) -> None:
        """Have something compared that is not in one answer."""
        self.said.append(Said(what, {"found": found}))

    # Logins

    def handshake(self, mechanism: str, *, by: str, version: int = HANDSHAKE_VERSION) -> Any:
        return self.ask("SaslHandshake", by=by, version=version, mechanism=mechanism)

    def token(self, token: bytes, *, by: str, version: int = AUTHENTICATE_VERSION) -> Any:
        return self.ask("SaslAuthenticate", by=by, version=version, auth_bytes=token)

    def plain(self, user: str, password: str = PASSWORD, *, by: str, authorization: str = "") -> Any:
        self.handshake("PLAIN", by=by)
        return self.token(f"{authorization}\0{user}\0{password}".encode(), by=by)

    def plain_again(self, user: str, password: str = PASSWORD, *, by: str, mechanism: str = "PLAIN") -> Any:
        """A login anew; Kafka lets each connection do that once a second."""
        time.sleep(ONCE_IN_S)
        self.handshake(mechanism, by=by)
        return self.token(plain_token(user, password), by=by)

    def scram(self, user: str, password: str = PASSWORD, *, by: str, mechanism: str = "SCRAM-SHA-256") -> Any:
        """A whole login; what brokers choose in it (nonce, salt) is not compared."""
        self.handshake(mechanism, by=by)
        one = SCRAM_MECHANISMS[mechanism]
        client = ScramClient(one, user, lambda salt, n: one.salted(password.encode(), salt, n), NONCE)
        first = self.masked(self.token(client.first(), by=by))
        if not isinstance(first, dict) or first["error_code"]:
            return first
        return self.masked(self.token(client.final(first["auth_bytes"]), by=by))

    def masked(self, answer: Any) -> Any:
        """The answer; what was said keeps of its token only how it begins."""
        if isinstance(answer, dict):
            self.said[-1].answer = {**answer, "auth_bytes": answer["auth_bytes"][:2]}
        return answer

    # Rules

    def create_rules(self, *entries: dict[str, Any], by: str = ADMIN) -> Any:
        return self.ask("CreateAcls", by=by, creations=entries)

    def bound(self) -> None:
        """Wait until rules that were made before now bind: until a later one does. Nothing of it is said."""
        before = len(self.said)
        name = f"witnessed-{next(_witnessed)}"
        witnessed = {
            "resource_type": TOPIC_TYPE,
            "resource_name": name,
            "resource_pattern_type": LITERAL,
            "principal": "User:witness",
            "host": "*",
            "operation": OF_DESCRIBE,
            "permission_type": ALLOW,
        }
        self.create_rules(witnessed)
        self.until(
            "Metadata",
            lambda answer: answer["topics"][0]["error_code"] == UNKNOWN_TOPIC,
            by="witness",
            version=4,
            topics=[{"name": name}],
        )
        del self.said[before:]


UNKNOWN_TOPIC: Final = 3
_witnessed: Final = itertools.count(1)


def _log_in(wire: Wire, user: str) -> None:
    """Log in by PLAIN, or fail the test."""
    steps: tuple[tuple[str, int, dict[str, Any]], ...] = (
        ("SaslHandshake", HANDSHAKE_VERSION, {"mechanism": b"PLAIN"}),
        ("SaslAuthenticate", AUTHENTICATE_VERSION, {"auth_bytes": plain_token(user, PASSWORD)}),
    )
    for api, version, tree in steps:
        wire.send(frame_of(KEYS[api], version, 1, tree))
        frame = wire.frame(LOGIN_S)
        flexible = api == "SaslAuthenticate"
        if frame is None or frame[4 + flexible : 6 + flexible] != b"\x00\x00":
            raise AssertionError(f"{user} is not let in at {wire.address}: {api}: {frame!r}")
