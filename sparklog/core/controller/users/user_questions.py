"""Who has a password for SCRAM, by which mechanisms, and with how many iterations. No key is shown."""

from collections import Counter
from collections.abc import Iterator, Mapping

from sparklog.core.controller.commands.user_commands import DescribedUser, DescribedUsers, DescribeUsers
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.quota_nodes import entity_of
from sparklog.core.controller.users.user_changes import path_of_user
from sparklog.core.security.login.scram import SCRAM_MECHANISMS, parse_credential
from sparklog.model.errors import ErrorCode
from sparklog.model.quota_entity import USER


def describe_users(image: ClusterImage, request: DescribeUsers) -> DescribedUsers:
    """Those who are named, each once; without names all who have a credential."""
    if not request.users:
        return DescribedUsers(tuple(_all(image)))
    return DescribedUsers(tuple(_named(image, user, times) for user, times in Counter(request.users).items()))


def _all(image: ClusterImage) -> Iterator[DescribedUser]:
    for path in sorted(image.quotas):
        credentials = _credentials(image.quotas[path])
        entity = entity_of(path)
        user = None if entity is None or len(entity.parts) > 1 else entity.by_type.get(USER)
        if user is not None and credentials:
            yield DescribedUser(user, credentials)


def _named(image: ClusterImage, user: str, times: int) -> DescribedUser:
    if not user:
        return DescribedUser(user, (), ErrorCode.resource_not_found, "Username must not be empty")
    if times > 1:
        return DescribedUser(
            user,
            (),
            ErrorCode.duplicate_resource,
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
        )
    credentials = _credentials(image.quotas.get(path_of_user(user), {}))
    if not credentials:
        return DescribedUser(
            user,
            (),
            ErrorCode.resource_not_found,
            f"Attempt to describe a user credential that does not exist: {user}",
        )
    return DescribedUser(user, credentials)


def _credentials(configs: Mapping[str, str]) -> tuple[tuple[int, int], ...]:
    found = (
        (mechanism.number, parse_credential(mechanism, configs[name]))
        for name, mechanism in SCRAM_MECHANISMS.items()
        if name in configs
    )
    return tuple((number, credential.iterations) for number, credential in found if credential is not None)
