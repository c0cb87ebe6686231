"""``partition.metadata``: the topic id of a partition's directory, in Kafka's format.

    version: 0
    topic_id: 3Db5QLSqSZieL3rJBUUegA

The id is a UUID in URL-safe base64 without padding. A topic that is deleted and created again has a new id,
so the new topic never uses a directory of the old one.
"""

import base64
import binascii
import uuid
from typing import Final

from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import NO_TOPIC_ID, TopicId
from sparklog.storage.disk import Disk

FILE: Final = "partition.metadata"
VERSION: Final = 0


def uuid_text(value: uuid.UUID) -> str:
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode("ascii")


def parse_uuid(text: str) -> uuid.UUID:
    """The UUID that ``uuid_text`` wrote; ValueError for anything else."""
    try:
        return uuid.UUID(bytes=base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except binascii.Error as error:
        raise ValueError(f"{text!r} is not a UUID in base64: {error}") from None


def read_topic_id(disk: Disk, directory: str) -> TopicId | None:
    """The topic id of a partition's directory; None without the file; LogDirectoryError if it is damaged."""
    path = f"{directory}/{FILE}"
    if not disk.exists(path):
        return None
    try:
        lines = (line.split(":", 1) for line in disk.read(path).decode("ascii").splitlines() if line.strip())
        fields = {name.strip(): value.strip() for name, value in lines}
        if int(fields["version"]) != VERSION:
            raise ValueError(f"version {fields['version']}, known is {VERSION}")
        return parse_uuid(fields["topic_id"])
    except (ValueError, KeyError) as error:
        raise LogDirectoryError(
            f"{path} does not say whose directory this is ({error!r}): move the directory away, and the "
            "broker fetches the partition again from its other replicas"
        ) from None


def write_topic_id(disk: Disk, directory: str, topic_id: TopicId) -> None:
    """Write the file. Its content is synced before the rename; the name is not synced here."""
    text = f"version: {VERSION}\ntopic_id: {uuid_text(topic_id)}\n"
    temporary = f"{directory}/{FILE}.tmp"
    if disk.exists(temporary):
        disk.remove(temporary)
    file = disk.open(temporary, create=True)
    file.append(text.encode("ascii"))
    file.fsync()
    disk.rename(temporary, f"{directory}/{FILE}")


def is_unfinished(disk: Disk, directory: str) -> bool:
    """Whether the directory has neither id nor segments: a crash interrupted the creation of the log, so
    the directory can be removed."""
    names = disk.list(directory)
    return FILE not in names and not any(name.endswith(".log") for name in names)


def settle_directory(disk: Disk, directory: str, topic_id: TopicId | None) -> TopicId:
    """Create the directory if it is missing; its topic id. LogDirectoryError if it has another id.

    The first flush syncs the directory's name: until then no record in it counts as flushed, and syncing each
    of a thousand new partitions here would take seconds.
    """
    if not disk.exists(directory):
        disk.make_directory(directory)
    known = read_topic_id(disk, directory)
    if topic_id is None or topic_id == NO_TOPIC_ID:
        return known or NO_TOPIC_ID
    if known is None:
        write_topic_id(disk, directory, topic_id)
    elif known != topic_id:
        raise LogDirectoryError(
            f"{directory} belongs to topic id {known}, not {topic_id}: it is left over from a deleted topic "
            "of that name; delete it first"
        )
    return topic_id
