"""All versions of a typed topic's columns, as arrow payloads have them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparklog.model.errors import SparklogError
from sparklog.model.schema.data_types import Columns
from sparklog.model.schema.document import SchemaDocument
from sparklog.records.arrow.arrow_types import arrow_column
from sparklog.records.arrow.columns import ArrowSchema
from sparklog.records.arrow.header import NO_COLUMN


class UnknownColumns(SparklogError):  # noqa: N818 (a state, not a mistake)
    """A batch is of a version of the topic's columns that is not known here."""

    def __init__(self, version: int, newest: int) -> None:
        super().__init__(f"rows of version {version} of the topic's columns: known are 1 to {newest}")
        self.version = version


@dataclass(frozen=True, slots=True)
class VersionColumns:
    """One version: its columns, and what a batch of it has in its header."""

    version: int
    columns: Columns
    schema: ArrowSchema
    key: int
    """The id of the column that is the record's key, or ``NO_COLUMN``."""
    timestamp: int
    renamed: Mapping[str, str] = field(compare=False)
    """Names that its columns had in earlier versions, each with the present one."""

    @property
    def not_null(self) -> Columns:
        return tuple(column for column in self.columns if not column.nullable)


class TopicColumns:
    """May be used by any thread."""

    def __init__(self, document: SchemaDocument) -> None:
        self.document = document
        self._versions: dict[int, VersionColumns] = {}

    @property
    def newest(self) -> VersionColumns:
        return self.at(self.document.version)

    def at(self, version: int) -> VersionColumns:
        """UnknownColumns for a version that the document does not have."""
        known = self._versions.get(version)
        if known is None:
            known = self._versions[version] = self._made(version)
        return known

    def _made(self, version: int) -> VersionColumns:
        document = self.document
        if not 1 <= version <= document.version:
            raise UnknownColumns(version, document.version)
        columns = document.at(version)
        return VersionColumns(
            version,
            columns,
            ArrowSchema(version, {column.id: arrow_column(column) for column in columns}),
            NO_COLUMN if document.key is None else document.key,
            NO_COLUMN if document.timestamp is None else document.timestamp,
            document.renamed(version),
        )
