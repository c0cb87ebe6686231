"""Who may log in by SCRAM: the credentials of all users, as they were last read.

An unknown user has a credential too: its salt is made of the name and of a secret of the cluster, so that it
is the same at all brokers and after each restart, and nobody's password fits it.
"""

import hmac
from collections import Counter
from collections.abc import Mapping
from typing import Final

from sparklog.core.security.login.scram import ITERATIONS_MIN, ScramCredential, ScramMechanism

_SALT_BYTES: Final = 20
"""As many as Kafka's tools draw."""

Credentials = Mapping[str, ScramCredential]
"""One user's, by mechanism."""


class ScramUsers:
    """For any thread: all users are replaced at once."""

    def __init__(self, secret: bytes = b"") -> None:
        self.secret = secret
        """The cluster's alone; given before anybody logs in."""
        self._by_user: dict[str, Credentials] = {}
        self._iterations: Mapping[str, int] = {}
        """Those of unknown users, by mechanism: as most known users have."""

    def replace_all(self, users: Mapping[str, Credentials]) -> list[tuple[str, str]]:
        """Know these users alone. Returns users and mechanisms whose credential is gone."""
        self._iterations = _most_common_iterations(users)
        before, self._by_user = self._by_user, dict(users)
        return [
            (user, mechanism)
            for user, credentials in before.items()
            for mechanism in credentials
            if mechanism not in users.get(user, {})
        ]

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        """The user's credential, or one with which nobody logs in."""
        nobodys = self._nobodys(mechanism, user)  # for known users too, because it takes time
        return self._by_user.get(user, {}).get(mechanism.name, nobodys)

    def has(self, user: str, mechanism: str) -> bool:
        return mechanism in self._by_user.get(user, {})

    def _nobodys(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        def drawn(what: str) -> bytes:
            data = f"{what}\0{mechanism.name}\0{user}".encode("utf-8", "surrogatepass")
            return hmac.digest(self.secret, data, mechanism.digest)

        iterations = self._iterations.get(mechanism.name, ITERATIONS_MIN)
        return ScramCredential(
            drawn("salt")[:_SALT_BYTES], drawn("stored key"), drawn("server key"), iterations
        )


def _most_common_iterations(users: Mapping[str, Credentials]) -> Mapping[str, int]:
    counts: dict[str, Counter[int]] = {}
    for credentials in users.values():
        for mechanism, credential in credentials.items():
            counts.setdefault(mechanism, Counter())[credential.iterations] += 1
    return {name: max(sorted(counted), key=counted.__getitem__) for name, counted in counts.items()}
