"""``schema``: the columns of a typed topic, in the directory of each of its partitions.

The file has the document as ZooKeeper has it (``model/schema/document``). A leader writes it before it
appends rows of a version, so that whoever has the directory can read the rows without a network. A damaged
file is written anew from the controller's answer.
"""

import logging
from typing import Final

from sparklog.model.errors import SchemaError
from sparklog.model.schema.document import SchemaDocument
from sparklog.storage.disk import Disk

FILE: Final = "schema"

logger: Final = logging.getLogger(__name__)


def read_schema(disk: Disk, directory: str) -> SchemaDocument | None:
    """None without the file. SchemaError if it is damaged, or of a later release."""
    path = f"{directory}/{FILE}"
    return SchemaDocument.decode(disk.read(path)) if disk.exists(path) else None


class SchemaFile:
    """The file of one log. ``document`` is its content; None without one that can be read."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._path = f"{directory}/{FILE}"
        self.document: SchemaDocument | None = None
        try:
            self.document = read_schema(disk, directory)
        except SchemaError as error:
            logger.warning("%s: %s; the controller is asked for it", self._path, error)

    def write(self, document: SchemaDocument) -> None:
        """Write the file, synced."""
        self._disk.write_atomically(self._path, document.encode())
        self.document = document
