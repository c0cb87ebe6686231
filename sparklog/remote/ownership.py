"""The mark that says which cluster a store belongs to, so that two clusters never share one.

The mark is the object ``sparklog-cluster-id``: the cluster's id in ASCII, and newlines up to 64 bytes.
The first cluster to write it has the store.
"""

from typing import Final

from sparklog.model.errors import ConfigError
from sparklog.remote.store import Failure, RemoteStore, RemoteStoreError

MARK: Final = "sparklog-cluster-id"
MARK_BYTES: Final = 64


def owner_of(store: RemoteStore) -> str | None:
    """The id of the cluster that the store belongs to; None if it belongs to nobody yet."""
    try:
        mark = store.read(MARK, 0, MARK_BYTES)
    except RemoteStoreError as error:
        if error.failure is Failure.MISSING:
            return None
        raise
    return mark.decode("ascii", errors="replace").rstrip("\n")


def claim(store: RemoteStore, cluster_id: str) -> None:
    """Make the store this cluster's. ConfigError if it is another's, or if the id cannot be one."""
    if not cluster_id.isascii() or not cluster_id.isprintable() or not 0 < len(cluster_id) < MARK_BYTES:
        raise ConfigError(f"{cluster_id!r} is not a cluster's id; `sparklog status` shows it")
    try:
        store.put(MARK, [cluster_id.encode().ljust(MARK_BYTES, b"\n")])
    except RemoteStoreError as error:
        if error.failure is not Failure.EXISTS:
            raise
    owner = owner_of(store)
    if owner != cluster_id:
        raise ConfigError(
            f"the store belongs to cluster {owner!r}, not to {cluster_id!r}; "
            "choose another folder, as two clusters would delete each other's objects"
        )
