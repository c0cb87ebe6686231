"""Notifications of changed settings of users, clients and addresses, in Kafka's format.

Sequential nodes ``/config/changes/config_change_N``, each with ``{"version":2,"entity_path":"users/alice"}``.
Older tools of Kafka write version 1, with a type and a name.
"""

import json
from typing import Final

from sparklog.core.controller.state.quota_nodes import CLIENT_CONFIGS, IP_CONFIGS, USER_CONFIGS
from sparklog.core.controller.state.znodes import CONFIG_CHANGES
from sparklog.model.errors import SparklogError
from sparklog.model.zookeeper import Create

CHANGE_PREFIX: Final = "config_change_"

_CONFIG: Final = "/config/"


def notify_of(path: str) -> Create:
    """The notification of a change of the node at ``path``, to be written together with it."""
    document = {"version": 2, "entity_path": path.removeprefix(_CONFIG)}
    data = json.dumps(document, separators=(",", ":")).encode()
    return Create(f"{CONFIG_CHANGES}/{CHANGE_PREFIX}", data, sequential=True)


def changed_path(path: str, data: bytes) -> str | None:
    """The node that the notification at ``path`` is about; None if it is none of a user, client or address.

    Raises SparklogError if it cannot be read, so that nobody knows what has changed.
    """
    try:
        document = json.loads(data)
        entity = document.get("entity_path") or f"{document['entity_type']}/{document['entity_name']}"
    except (ValueError, KeyError, AttributeError) as error:
        raise SparklogError(f"{path} names nothing that has changed ({error!r}): {data[:200]!r}") from None
    changed = f"{_CONFIG}{entity}"
    steps = changed.split("/")
    is_followed = changed.startswith((f"{USER_CONFIGS}/", f"{CLIENT_CONFIGS}/", f"{IP_CONFIGS}/"))
    return changed if is_followed and not {"", ".", ".."} & set(steps[1:]) else None
