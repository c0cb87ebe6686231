"""Changes of users' passwords: which are legal, and what they write. The rules are those of Kafka 3.9.

A node of a user has quotas beside the credentials, and other tools write it as well. So a change is decided
over the node as it was read just before, and written over that version. Of a user who is refused nothing is
changed; other users are.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from sparklog.core.controller.commands.user_commands import (
    AlterUsers,
    CredentialDeletion,
    CredentialUpsertion,
    UserResult,
    UsersResult,
)
from sparklog.core.controller.state.entity_writes import EntityWrites
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.quota_nodes import quota_path
from sparklog.core.controller.steps import ApplyUsers, Decision
from sparklog.core.security.login.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SCRAM_MECHANISMS,
    ScramMechanism,
    credential_of,
    credential_text,
)
from sparklog.core.security.login.server_login import principal_of_user
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.quota_entity import USER, QuotaEntity

CHANGES_MAX: Final = 1_000
"""In one request: they are one write."""

SALT_BYTES_MAX: Final = 1_024

MECHANISMS: Final[Mapping[int, ScramMechanism]] = {one.number: one for one in SCRAM_MECHANISMS.values()}
"""By Kafka's number."""


def path_of_user(user: str) -> str:
    """The node of a user's credentials and quotas."""
    return quota_path(QuotaEntity(((USER, user),)))


def decide_users(image: ClusterImage, step: ApplyUsers) -> Decision | UsersResult:
    """What to write, or the answer if there is nothing to write."""
    request = step.request
    if len(request.deletions) + len(request.upsertions) > CHANGES_MAX:
        message = f"a request changes at most {CHANGES_MAX} credentials"
        return UsersResult(
            tuple(UserResult(one, ErrorCode.invalid_request, message) for one in request.users())
        )
    writes = EntityWrites(image)
    results = []
    for user in request.users():
        try:
            writes.put(path_of_user(user), _altered(image, user, request))
        except KafkaError as error:
            results.append(UserResult(user, error.code, error.message))
        else:
            results.append(UserResult(user))
    result = UsersResult(tuple(results))
    if not writes.changes:
        return result
    if not writes.fits:
        message = "the credentials are too large for one write: set them in several requests"
        return UsersResult(
            tuple(UserResult(one, ErrorCode.invalid_request, message) for one in request.users())
        )
    return Decision(step, tuple(writes.operations), tuple(writes.changes), result)


def _altered(image: ClusterImage, user: str, request: AlterUsers) -> dict[str, str]:
    """The node's settings after the change; KafkaError if any change of this user is refused."""
    deletions = [one for one in request.deletions if one.user == user]
    upsertions = [one for one in request.upsertions if one.user == user]
    _check_user(user, deletions, upsertions)
    after = dict(image.quotas.get(path_of_user(user), {}))
    for deletion in deletions:
        if after.pop(_mechanism(deletion.mechanism).name, None) is None:
            raise KafkaError(
                ErrorCode.resource_not_found, "Attempt to delete a user credential that does not exist"
            )
    for upsertion in upsertions:
        after[_mechanism(upsertion.mechanism).name] = _credential(upsertion)
    return after


def _check_user(
    user: str, deletions: list[CredentialDeletion], upsertions: list[CredentialUpsertion]
) -> None:
    if not user:
        raise KafkaError(ErrorCode.unacceptable_credential, "Username must not be empty")
    if upsertions and principal_of_user(user) is None:
        raise KafkaError(
            ErrorCode.unacceptable_credential,
            "the name is too long, or has characters that cannot be printed: nobody could log in by it",
        )
    named = Counter([*(one.mechanism for one in deletions), *(one.mechanism for one in upsertions)])
    if max(named.values()) > 1:
        raise KafkaError(
            ErrorCode.duplicate_resource, "A user credential cannot be altered twice in the same request"
        )


def _mechanism(number: int) -> ScramMechanism:
    found = MECHANISMS.get(number)
    if found is None:
        raise KafkaError(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    return found


def _credential(upsertion: CredentialUpsertion) -> str:
    mechanism = _mechanism(upsertion.mechanism)
    problem = None
    if upsertion.iterations < ITERATIONS_MIN:
        problem = "Too few iterations"
    elif upsertion.iterations > ITERATIONS_MAX:
        problem = "Too many iterations"
    elif not 0 < len(upsertion.salt) <= SALT_BYTES_MAX:
        problem = f"a salt has 1 to {SALT_BYTES_MAX} bytes"
    elif len(upsertion.salted_password) != mechanism.key_bytes:
        problem = f"a salted password of {mechanism.name} has {mechanism.key_bytes} bytes"
    if problem is not None:
        raise KafkaError(ErrorCode.unacceptable_credential, problem)
    salt, salted = bytes(upsertion.salt), bytes(upsertion.salted_password)
    return credential_text(credential_of(mechanism, salted, salt, upsertion.iterations))
