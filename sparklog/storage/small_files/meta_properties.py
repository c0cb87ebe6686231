"""``meta.properties``: the owner and the id of a log directory. A Java properties file, as Kafka's.

    version=0
    cluster.id=Some22CharacterBase64A
    broker.id=1
    directory.id=3Db5QLSqSZieL3rJBUUegA

The directory's id is a UUID that is generated with the directory. ZooKeeper records it for each broker: an
emptied or replaced directory has another id, and so proves nothing about records that were acknowledged.
"""

import uuid
from dataclasses import dataclass
from typing import Final

from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import BrokerId
from sparklog.storage.disk import Disk
from sparklog.storage.small_files.partition_metadata import parse_uuid, uuid_text

FILE: Final = "meta.properties"
VERSION: Final = 0


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The owner and the id of a log directory."""

    cluster_id: str
    broker_id: BrokerId
    uuid: uuid.UUID

    def refuse_unless(self, directory: str, broker_id: int | None, cluster_id: str) -> None:
        """LogDirectoryError if the directory belongs to another broker or cluster."""
        if broker_id is not None and broker_id != self.broker_id:
            raise LogDirectoryError(
                f"{directory} belongs to broker {self.broker_id}, this is broker {broker_id}: start it with "
                f"broker.id={self.broker_id}, or give it a directory of its own"
            )
        if cluster_id != self.cluster_id:
            raise LogDirectoryError(
                f"{directory} belongs to cluster {self.cluster_id}, but ZooKeeper has cluster {cluster_id}: "
                "check zookeeper.connect and its chroot, or give this broker a directory of its own"
            )


def read(disk: Disk, directory: str) -> MetaProperties | None:
    """The properties of a log directory; None without the file; LogDirectoryError if it is damaged."""
    path = f"{directory}/{FILE}"
    if not disk.exists(path):
        return None
    try:
        lines = (line.strip() for line in disk.read(path).decode("utf-8").splitlines())
        fields = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        if int(fields["version"]) != VERSION:
            raise ValueError(f"version {fields['version']}, known is {VERSION}")
        directory_id = parse_uuid(fields["directory.id"])
        return MetaProperties(fields["cluster.id"], BrokerId(int(fields["broker.id"])), directory_id)
    except (ValueError, KeyError) as error:
        raise LogDirectoryError(
            f"{path} does not say whose directory this is ({error!r}): restore it from a copy, or start with "
            "an empty directory and let the broker fetch its partitions again"
        ) from None


def write(disk: Disk, directory: str, properties: MetaProperties) -> None:
    """Write the properties atomically and synced, so that a directory never has half an identity."""
    lines = (
        f"version={VERSION}",
        f"cluster.id={properties.cluster_id}",
        f"broker.id={properties.broker_id}",
        f"directory.id={uuid_text(properties.uuid)}",
        "",
    )
    disk.write_atomically(f"{directory}/{FILE}", "\n".join(lines).encode("utf-8"))
