"""What others may do with the nodes of a closed cluster: read them, but for those with secrets, as in Kafka
(``ZkData.defaultAcls``).
"""

from typing import Final

from sparklog.core.controller.state.quota_nodes import USER_CONFIGS
from sparklog.core.controller.state.znodes import (
    BROKER_CONFIGS,
    CONTROLLER,
    CONTROLLER_EPOCH,
    LOGIN_SECRET,
    PERSISTENT_PATHS,
    PRODUCER_ID_BLOCK,
    REMOTE_LOGS,
)
from sparklog.core.security.rule_nodes import RULE_PATHS
from sparklog.model.zookeeper_access import CREATOR_ALONE, CREATOR_WRITES, Acl

CONFIDENTIAL: Final = (USER_CONFIGS, BROKER_CONFIGS, LOGIN_SECRET)
"""Credentials of users; settings of brokers, among which Kafka keeps passwords; what salts are made of."""

ROOTS: Final = frozenset(
    "/" + path.split("/")[1]
    for path in (
        *PERSISTENT_PATHS,
        *RULE_PATHS,
        CONTROLLER,
        CONTROLLER_EPOCH,
        LOGIN_SECRET,
        PRODUCER_ID_BLOCK,
        REMOTE_LOGS,
    )
)
"""The highest nodes of a cluster, in a ZooKeeper or a chroot that others may use as well."""


def is_confidential(path: str) -> bool:
    """Whether the cluster alone reads the node at ``path``, which is relative to the chroot."""
    return any(path == root or path.startswith(f"{root}/") for root in CONFIDENTIAL)


def closed_acl(path: str) -> Acl:
    """The grants of a node that the cluster creates or closes."""
    return CREATOR_ALONE if is_confidential(path) else CREATOR_WRITES
