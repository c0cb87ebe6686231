"""Users who log in by SCRAM, as ZooKeeper holds them in Kafka's format: read whole, and again after a change.

A user's node, ``/config/users/NAME``, has a credential for each mechanism beside the user's quotas. Whoever
changes one adds a notification below ``/config/changes``, which is what is watched here. A node that cannot
be read costs its user alone the login.
"""

import logging
import secrets
from collections.abc import Callable
from typing import Final

from sparklog.core.controller.state.quota_nodes import USER_CONFIGS, entity_of
from sparklog.core.controller.state.znodes import CONFIG_CHANGES, LOGIN_SECRET, decode_configs
from sparklog.core.security.login.known_users import Credentials, ScramUsers
from sparklog.core.security.login.scram import SCRAM_MECHANISMS, parse_credential
from sparklog.model.errors import SparklogError
from sparklog.model.loops import Await, Loop, Signal
from sparklog.model.quota_entity import USER
from sparklog.model.zookeeper import ConnectionLost, Create, MultiFailed, ZooKeeper, ZooKeeperError

LOOK_AGAIN_MS: Final = 1_000
"""Pause before the next read after ZooKeeper did not answer. Meanwhile the users known last may log in."""

SECRET_BYTES: Final = 32
_ATTEMPTS_MAX: Final = 10

OnGone = Callable[[str, str], None]
"""Takes a user and a mechanism whose credential was deleted."""

logger: Final = logging.getLogger(__name__)


def load_users(zookeeper: ZooKeeper, users: ScramUsers) -> None:
    """All users, and the secret of the cluster, before anybody may log in."""
    users.secret = _read_or_create_secret(zookeeper)
    users.replace_all(_read_users(zookeeper))


def watch_users(zookeeper: ZooKeeper, users: ScramUsers, on_gone: OnGone) -> Loop:
    """Keep ``users`` as ZooKeeper has them."""
    changed = Signal()
    while True:
        try:
            zookeeper.watch_children(CONFIG_CHANGES, changed.give)
            found = _read_users(zookeeper)
        except ZooKeeperError as error:
            logger.info("cannot read the users in ZooKeeper: %s", error)
            yield Await(changed, LOOK_AGAIN_MS)
            continue
        for user, mechanism in users.replace_all(found):
            on_gone(user, mechanism)
        yield Await(changed)


def _read_users(zookeeper: ZooKeeper) -> dict[str, Credentials]:
    paths = [f"{USER_CONFIGS}/{name}" for name in zookeeper.children(USER_CONFIGS)]
    users: dict[str, Credentials] = {}
    for path, node in zip(paths, zookeeper.get_many(paths), strict=True):
        entity = entity_of(path)
        name = None if entity is None else entity.by_type.get(USER)
        if name is not None and node is not None and node.data:
            users[name] = _credentials_in(path, node.data)
    return users


def _credentials_in(path: str, data: bytes) -> Credentials:
    try:
        configs = decode_configs(path, data)
    except SparklogError as error:
        logger.error("a user cannot log in: %s", error)
        return {}
    found = {}
    for name, mechanism in SCRAM_MECHANISMS.items():
        credential = parse_credential(mechanism, configs[name]) if name in configs else None
        if credential is not None:
            found[name] = credential
        elif name in configs:
            logger.error("a user cannot log in by %s: the credential in %s is none; set it anew", name, path)
    return found


def _read_or_create_secret(zookeeper: ZooKeeper) -> bytes:
    for _ in range(_ATTEMPTS_MAX):
        node = zookeeper.get(LOGIN_SECRET)
        if node is not None:
            return node.data
        try:
            zookeeper.multi([Create(LOGIN_SECRET, secrets.token_bytes(SECRET_BYTES))])
        except (MultiFailed, ConnectionLost) as problem:
            logger.info("creating the secret of logins: %s; reading it again", problem)
    raise SparklogError(f"{LOGIN_SECRET} could neither be read nor created in {_ATTEMPTS_MAX} attempts")
