"""Passwords of users for SCRAM: changes, questions and their results (KIP-554)."""

from dataclasses import dataclass, field

from sparklog.model.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class CredentialDeletion:
    """``mechanism`` is Kafka's number."""

    user: str
    mechanism: int


@dataclass(frozen=True, slots=True)
class CredentialUpsertion:
    """A password that the client has salted, which is shown nowhere. ``mechanism`` is Kafka's number."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes = field(repr=False)
    salted_password: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class AlterUsers:
    deletions: tuple[CredentialDeletion, ...] = ()
    upsertions: tuple[CredentialUpsertion, ...] = ()

    def users(self) -> tuple[str, ...]:
        """Each user once, in the order of the request."""
        deleted, set_ = (one.user for one in self.deletions), (one.user for one in self.upsertions)
        return tuple(dict.fromkeys([*deleted, *set_]))


@dataclass(frozen=True, slots=True)
class UserResult:
    user: str
    error: ErrorCode = ErrorCode.none
    message: str = ""


@dataclass(frozen=True, slots=True)
class UsersResult:
    """One result for each user."""

    results: tuple[UserResult, ...]


@dataclass(frozen=True, slots=True)
class DescribeUsers:
    """``users``: each as often as it was named; none for all who have a credential."""

    users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedUser:
    """``credentials``: mechanism's number and iterations."""

    user: str
    credentials: tuple[tuple[int, int], ...] = ()
    error: ErrorCode = ErrorCode.none
    message: str = ""


@dataclass(frozen=True, slots=True)
class DescribedUsers:
    users: tuple[DescribedUser, ...] = ()
    error: ErrorCode = ErrorCode.none
    message: str = ""
