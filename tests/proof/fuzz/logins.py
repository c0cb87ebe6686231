"""``python -m fuzz.logins``: logins in any order and damage, against the machines that judge them.

A case is one connection: versions, handshakes, tokens that are right, of a wrong password, damaged, repeated
or noise, other requests, time that passes. The driver knows which logins were honest. A rule that is broken
raises ``AssertionError``:

- nobody is in without an honest login by the right password, and nobody as another user;
- nothing passes before the login, within it, after the session's end, or after a refusal;
- no token raises anything, and a refusal shows no part of a password;
- a JAAS string is read or refused by ``ConfigError``, which shows no value.
"""

import argparse
import random
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Final

from sparklog.core.security.login.known_users import ScramUsers
from sparklog.core.security.login.mechanism import ServerMechanism
from sparklog.core.security.login.plain import PlainServer, plain_token
from sparklog.core.security.login.scram import SCRAM_MECHANISMS, ScramMechanism, credential_of
from sparklog.core.security.login.scram_client import ScramClient, ServerRefused
from sparklog.core.security.login.scram_server import ScramServer
from sparklog.core.security.login.server_login import (
    AnswerToken,
    HangUp,
    LoginState,
    LoginTerms,
    NewMechanism,
    Pass,
    Refuse,
    ServerLogin,
)
from sparklog.model.errors import ConfigError
from sparklog.model.settings.jaas import MODULES, parse_jaas
from sparklog.model.time import MonotonicMs

PASSWORDS: Final = {"alice": "planted of alice", "bob": "planted of bob"}
NAMES: Final = (*PASSWORDS, "nobody", "a,b=c", "ANONYMOUS", "")
SESSION_MS: Final = 1_000
STEPS_MAX: Final = 14
SALT: Final = b"0123456789abcdef"
ITERATIONS: Final = 4_096

_LEADS_ON: Final = 0.85
_KINDS: Final = ("token", "handshake", "versions", "request", "time")
_LEADING: Final[dict[LoginState, tuple[str, ...]]] = {
    LoginState.FIRST: ("versions", "handshake"),
    LoginState.HANDSHAKE: ("handshake",),
    LoginState.TOKENS: ("token",),
    LoginState.IN: ("request", "handshake", "time"),
    LoginState.OVER: _KINDS,
}

_NOISE: Final = ("", '"', "'", "\\", ";", "=", "\n", "/*", "é", "\\u12")

_SALTED: Final[dict[tuple[str, str], bytes]] = {}


def salted(mechanism: ScramMechanism, password: str) -> bytes:
    """Computed once for each password: it is what costs."""
    key = mechanism.name, password
    if key not in _SALTED:
        _SALTED[key] = mechanism.salted(password.encode(), SALT, ITERATIONS)
    return _SALTED[key]


def terms() -> LoginTerms:
    users = ScramUsers(b"secret")
    users.replace_all(
        {
            user: {
                name: credential_of(one, salted(one, password), SALT, ITERATIONS)
                for name, one in SCRAM_MECHANISMS.items()
            }
            for user, password in PASSWORDS.items()
        }
    )

    def scram(mechanism: ScramMechanism, nonce: str) -> ServerMechanism:
        return ScramServer(mechanism, lambda user: users.credential(mechanism, user), nonce)

    def plain(_: str) -> ServerMechanism:
        return PlainServer(lambda: PASSWORDS)

    mechanisms: dict[str, NewMechanism] = {"PLAIN": plain}
    for name, mechanism in SCRAM_MECHANISMS.items():
        mechanisms[name] = partial(scram, mechanism)
    return LoginTerms(mechanisms, dict.fromkeys(mechanisms, SESSION_MS))


TERMS: Final = terms()


@dataclass(slots=True)
class Connection:
    """One connection, and what its client has honestly done."""

    dice: random.Random
    login: ServerLogin = field(default_factory=lambda: ServerLogin(TERMS))
    now_ms: MonotonicMs = MonotonicMs(0)
    mechanism: str = ""
    user: str = ""
    password: str = ""
    is_bare: bool = False
    is_honest: bool = False
    client: ScramClient | None = None
    answers: list[bytes] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)
    logged_in: str = ""
    ends_ms: int = 0

    def step(self) -> None:
        """What leads on, or anything."""
        leading = _LEADING[self.login.state]
        kind = self.dice.choice(leading if self.dice.random() < _LEADS_ON else _KINDS)
        getattr(self, f"_{kind}")()

    def _time(self) -> None:
        self.now_ms = MonotonicMs(self.now_ms + self.dice.choice((1, SESSION_MS - 1, SESSION_MS)))

    def _versions(self) -> None:
        before, may_pass = self.login.state, self.now_ms < self.ends_ms
        answer = self.login.on_versions(self.now_ms, is_served=self.dice.random() < 0.7)
        is_due = before is LoginState.FIRST or (before is LoginState.IN and may_pass)
        assert isinstance(answer, Pass) == is_due, before

    def _request(self) -> None:
        may_pass = self.login.state is LoginState.IN and self.now_ms < self.ends_ms
        answer = self.login.on_request("Produce", self.now_ms)
        assert isinstance(answer, Pass) == may_pass, answer

    def _handshake(self) -> None:
        names = [*TERMS.mechanisms, "GSSAPI"]
        self.mechanism = self.dice.choice(names)
        self.is_bare = self.dice.random() < 0.5
        self.user = self.dice.choice(tuple(PASSWORDS) if self.dice.random() < 0.7 else NAMES)
        if self.logged_in and self.dice.random() < 0.7:
            self.mechanism, self.user = self.login.mechanism, self.logged_in
        is_right = self.dice.random() < 0.7
        self.password = PASSWORDS.get(self.user, "x") if is_right else "wrong"
        answer = self.login.on_handshake(self.mechanism, self._nonce(), is_bare=self.is_bare)
        self.is_honest, self.answers, self.client = not isinstance(answer, HangUp), [], None
        if self.mechanism in SCRAM_MECHANISMS:
            one = SCRAM_MECHANISMS[self.mechanism]
            password = self.password
            self.client = ScramClient(one, self.user, lambda *_: salted(one, password), self._nonce())

    def _nonce(self) -> str:
        return f"nonce-{self.dice.getrandbits(64)}"

    def _token(self) -> None:
        token = self._next_token()
        as_bare = self.is_bare if self.dice.random() < 0.95 else not self.is_bare
        self.sent.append(token)
        answer = self.login.on_token(token, self.now_ms, is_bare=as_bare)
        if isinstance(answer, AnswerToken):
            self.answers.append(answer.token)
            if answer.principal:
                self._check_entrance(token, answer.principal)
        elif isinstance(answer, Refuse):
            assert "planted" not in answer.message, answer
            assert self.login.state is LoginState.OVER

    def _next_token(self) -> bytes:
        """The honest token in this place, or another."""
        kind = self.dice.random()
        honest = self._honest()
        if kind < 0.7 and honest is not None:
            return honest
        self.is_honest = False
        if kind < 0.85 and honest:
            damaged = bytearray(honest)
            # Not at the end, where base64 has bits that mean nothing.
            damaged[self.dice.randrange(max(1, len(damaged) - 3))] ^= 1 << self.dice.randrange(8)
            return bytes(damaged)
        if kind < 0.93 and self.sent:
            return self.dice.choice(self.sent)
        return self.dice.randbytes(self.dice.randrange(60))

    def _honest(self) -> bytes | None:
        if self.mechanism == "PLAIN":
            return plain_token(self.user, self.password)
        if self.client is None:
            return None
        if not self.answers:
            return self.client.first()
        try:
            return self.client.final(self.answers[-1])
        except ServerRefused:
            return None

    def _check_entrance(self, token: bytes, principal: str) -> None:
        user = principal.removeprefix("User:")
        assert user in PASSWORDS, principal
        if self.mechanism == "PLAIN":
            authorization_id, name, password = token.decode().split("\0")
            assert (name, password) == (user, PASSWORDS[user])
            assert authorization_id in ("", user)
        else:
            assert self.is_honest, "a login that was not honest is complete"
            assert (user, self.password) == (self.user, PASSWORDS[user])
        assert self.logged_in in ("", user), f"{self.logged_in} has become {user}"
        self.logged_in, self.ends_ms = user, self.now_ms + SESSION_MS


def play(seed: int, number: int) -> None:
    """One connection, and one JAAS string; AssertionError if a rule is broken."""
    dice = random.Random(f"{seed}/{number}")
    connection = Connection(dice)
    for _ in range(dice.randrange(2, STEPS_MAX)):
        connection.step()
    read_jaas(dice)


def read_jaas(dice: random.Random) -> None:
    text = f"{dice.choice(MODULES)} required username=\"planted\" password='planted' user_a=planted;"
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(text))
        text = (
            text[:at] + dice.choice(("", '"', "'", "\\", ";", "=", "\n", "/*", "é", "\\u12")) + text[at + 1 :]
        )
    try:
        entry = parse_jaas(text)
    except ConfigError as error:
        assert "plante" not in str(error), error  # noqa: PT017 (the rule is about the error's text)
    else:
        assert entry.module in MODULES
        assert "plante" not in repr(entry)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.logins", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=60)
    arguments = parser.parse_args()
    end = time.monotonic() + arguments.seconds
    for number in count():
        if time.monotonic() >= end:
            break
        try:
            play(arguments.seed, number)
        except Exception:
            print(f"case {number} of seed {arguments.seed}", file=sys.stderr)
            raise
    print(f"seed {arguments.seed}: {number:,} connections, no rule was broken")
    return 0


if __name__ == "__main__":
    sys.exit(main())
