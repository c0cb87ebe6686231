"""``partition.metadata``: which topic, by id, a partition's directory belongs to. Kafka's format.

    version: 0
    topic_id: 3Db5QLSqSZieL3rJBUUegA

The id is a UUID in URL-safe base64 without padding. A topic that is deleted and created again has a new id,
so that a directory of the old one is never taken for the new one's.
"""

import base64
import binascii
import uuid
from typing import Final

from sparklog.model.errors import LogDirectoryError
from sparklog.model.ids import TopicId
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
    """The topic id of a partition's directory; None if it has none yet."""
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
    text = f"version: {VERSION}\ntopic_id: {uuid_text(topic_id)}\n"
    disk.write_atomically(f"{directory}/{FILE}", text.encode("ascii"))
