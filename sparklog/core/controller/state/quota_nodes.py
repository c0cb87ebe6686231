"""Where ZooKeeper holds quotas: ``/config/users/U``, ``/config/clients/C``, ``/config/users/U/clients/C`` and
``/config/ips/I``, as in Kafka. ``<default>`` stands in place of a name for all names without a node.

A name is percent-encoded by Kafka's rule, so that it is one step of a path. A node that exists only for those
below it is empty.
"""

from collections.abc import Iterator
from typing import Final
from urllib.parse import quote, unquote

from sparklog.model.quota_entity import CLIENT_ID, IP, USER, QuotaEntity

USER_CONFIGS: Final = "/config/users"
CLIENT_CONFIGS: Final = "/config/clients"
IP_CONFIGS: Final = "/config/ips"

ENTITY_DIRECTORIES: Final = (USER_CONFIGS, CLIENT_CONFIGS, IP_CONFIGS)

CLIENTS_OF_USER: Final = "clients"
"""The child of a user's node that holds the nodes of the user's clients."""

_DEFAULT: Final = "<default>"


def quota_path(entity: QuotaEntity) -> str:
    """The node of ``entity``, whose types are a legal combination."""
    by_type = entity.by_type
    if IP in by_type:
        return f"{IP_CONFIGS}/{_encode(by_type[IP])}"
    if USER not in by_type:
        return f"{CLIENT_CONFIGS}/{_encode(by_type[CLIENT_ID])}"
    of_user = f"{USER_CONFIGS}/{_encode(by_type[USER])}"
    if CLIENT_ID not in by_type:
        return of_user
    return f"{of_user}/{CLIENTS_OF_USER}/{_encode(by_type[CLIENT_ID])}"


def parents_of(path: str) -> Iterator[str]:
    """The nodes between ``path`` and the directory of its kind, the highest first."""
    steps = path.split("/")
    for length in range(4, len(steps)):
        yield "/".join(steps[:length])


def entity_of(path: str) -> QuotaEntity | None:
    """The entity of the node ``path``; None if it is a user's directory of clients."""
    match path.split("/")[2:]:
        case ["users", user]:
            return QuotaEntity(((USER, _decode(user)),))
        case ["users", user, "clients", client]:
            return QuotaEntity(((USER, _decode(user)), (CLIENT_ID, _decode(client))))
        case ["clients", client]:
            return QuotaEntity(((CLIENT_ID, _decode(client)),))
        case ["ips", ip]:
            return QuotaEntity(((IP, _decode(ip)),))
    return None


def _encode(name: str | None) -> str:
    """As Kafka's Sanitizer: only letters, digits, ``.``, ``-`` and ``_`` stay as they are."""
    return _DEFAULT if name is None else quote(name, safe="").replace("~", "%7E")


def _decode(step: str) -> str | None:
    return None if step == _DEFAULT else unquote(step)
