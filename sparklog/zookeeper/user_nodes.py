"""Users who log in by SCRAM, as ZooKeeper holds them in Kafka's format.

A user's node, ``/config/users/NAME``, has a credential for each mechanism beside the user's quotas. A
credential that cannot be read costs its user alone the login.
"""

import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Final

from sparklog.core.controller.state.quota_nodes import entity_of
from sparklog.core.controller.state.znodes import LOGIN_SECRET
from sparklog.core.security.login.known_users import Credentials, ScramUsers
from sparklog.core.security.login.scram import SCRAM_MECHANISMS, parse_credential
from sparklog.model.errors import SparklogError
from sparklog.model.quota_entity import USER
from sparklog.model.zookeeper import ConnectionLost, Create, MultiFailed, ZooKeeper
from sparklog.zookeeper.entity_configs import Configs

SECRET_BYTES: Final = 32
_ATTEMPTS_MAX: Final = 10

OnGone = Callable[[str, str], None]
"""Takes a user and a mechanism whose credential was deleted."""

logger: Final = logging.getLogger(__name__)


class UsersReader:
    """Keeps ``users`` as the nodes have them (``ConfigsReader``)."""

    def __init__(self, users: ScramUsers, on_gone: OnGone) -> None:
        self._users = users
        self._on_gone = on_gone
        self._known: dict[str, Credentials] = {}

    def replace(self, nodes: Mapping[str, Configs]) -> None:
        self._known = {}
        for path, configs in nodes.items():
            self._note(path, configs)
        self._publish()

    def put(self, path: str, configs: Configs) -> None:
        if self._note(path, configs):
            self._publish()

    def _note(self, path: str, configs: Configs) -> bool:
        """Whether the node is a user's own, and not of one of its clients."""
        entity = entity_of(path)
        user = None if entity is None or len(entity.parts) > 1 else entity.by_type.get(USER)
        if user is None:
            return False
        credentials = _credentials_in(path, configs)
        if credentials:
            self._known[user] = credentials
        else:
            self._known.pop(user, None)
        return True

    def _publish(self) -> None:
        for user, mechanism in self._users.replace_all(self._known):
            self._on_gone(user, mechanism)


def _credentials_in(path: str, configs: Configs) -> Credentials:
    found = {}
    for name, mechanism in SCRAM_MECHANISMS.items():
        credential = parse_credential(mechanism, configs[name]) if name in configs else None
        if credential is not None:
            found[name] = credential
        elif name in configs:
            logger.error("a user cannot log in by %s: the credential in %s is none; set it anew", name, path)
    return found


def login_secret(zookeeper: ZooKeeper) -> bytes:
    """The secret of the cluster's logins, made by the first that asks."""
    for _ in range(_ATTEMPTS_MAX):
        node = zookeeper.get(LOGIN_SECRET)
        if node is not None:
            return node.data
        try:
            zookeeper.multi([Create(LOGIN_SECRET, secrets.token_bytes(SECRET_BYTES))])
        except (MultiFailed, ConnectionLost) as problem:
            logger.info("creating the secret of logins: %s; reading it again", problem)
    raise SparklogError(f"{LOGIN_SECRET} could neither be read nor created in {_ATTEMPTS_MAX} attempts")
