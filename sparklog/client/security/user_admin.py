"""Users' passwords for SCRAM: who has some, and changes of them (KIP-554).

A password is salted here, so that neither brokers nor ZooKeeper ever see it. What is sent is worth a password
all the same: over a network that others share, use TLS.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sparklog.core.security.login.scram import SCRAM_MECHANISMS
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.wire.messages.security.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from sparklog.wire.messages.security.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

ITERATIONS_DEFAULT: Final = 8_192
_SALT_BYTES: Final = 20
_NAMES: Final = {one.number: one.name for one in SCRAM_MECHANISMS.values()}


class Controlled(Protocol):
    """What is needed of a client of the cluster."""

    def call_controller(self, message: Any, error_of: Callable[[Any], ErrorCode] | None = None) -> Any: ...


@dataclass(frozen=True, slots=True)
class User:
    """``credentials``: iterations by the mechanism's name."""

    name: str
    credentials: dict[str, int]


class UserAdmin:
    """Changes and questions, answered by the controller; KafkaError if it refuses."""

    def __init__(self, cluster: Controlled) -> None:
        self._cluster = cluster

    def users(self) -> list[User]:
        """All who have a password, by name."""
        return sorted(self._described(()), key=lambda user: user.name)

    def user(self, name: str) -> User | None:
        """None if there is nobody of that name with a password."""
        try:
            (found,) = self._described((name,))
        except KafkaError as error:
            if error.code is ErrorCode.resource_not_found:
                return None
            raise
        return found

    def set_password(self, name: str, mechanism: str, password: str, iterations: int) -> None:
        """Give a user this password for a mechanism, in place of an earlier one."""
        change = AlterUserScramCredentialsRequest(upsertions=[salted(name, mechanism, password, iterations)])
        self._alter(change)

    def delete(self, name: str, mechanisms: Sequence[str]) -> None:
        """Take a user's passwords for these mechanisms away: what they have opened is disconnected."""
        deletions = [
            ScramCredentialDeletion(name=name, mechanism=SCRAM_MECHANISMS[one].number) for one in mechanisms
        ]
        self._alter(AlterUserScramCredentialsRequest(deletions=deletions))

    def _described(self, names: Sequence[str]) -> list[User]:
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=name) for name in names])
        response: DescribeUserScramCredentialsResponse = self._cluster.call_controller(
            request, lambda response: response.error_code
        )
        _raise(response.error_code, response.error_message)
        users = []
        for result in response.results:
            _raise(result.error_code, result.error_message)
            infos = {_NAMES.get(one.mechanism, "?"): one.iterations for one in result.credential_infos}
            users.append(User(result.user, infos))
        return users

    def _alter(self, request: AlterUserScramCredentialsRequest) -> None:
        def error_of(response: AlterUserScramCredentialsResponse) -> ErrorCode:
            return response.results[0].error_code if response.results else ErrorCode.none

        response: AlterUserScramCredentialsResponse = self._cluster.call_controller(request, error_of)
        for result in response.results:
            _raise(result.error_code, result.error_message)


def salted(name: str, mechanism: str, password: str, iterations: int) -> ScramCredentialUpsertion:
    """What is sent in place of a password."""
    salt, scram = secrets.token_bytes(_SALT_BYTES), SCRAM_MECHANISMS[mechanism]
    return ScramCredentialUpsertion(
        name=name,
        mechanism=scram.number,
        iterations=iterations,
        salt=salt,
        salted_password=scram.salted(password.encode(), salt, iterations),
    )


def _raise(code: ErrorCode, message: str | None) -> None:
    if code is not ErrorCode.none:
        raise KafkaError(code, message or "the controller refuses")
