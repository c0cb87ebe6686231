"""The edge between the log and its readers: who is given which bytes.

| reader | untyped topic | typed topic |
|---|---|---|
| Fetch 0 to 3 | messages | messages, each row as JSON |
| no kinds of payload | *records* | *records*, each row as JSON |
| takes *arrow* version 1 | as on disk | *records*, each row as JSON |
| takes *arrow* version 2, too | as on disk | as on disk |
| names columns, too | refused | cut, with these columns, without batches that it does not want |

Our own clients say in each fetch which kinds they take. What is given as on disk leaves by ``sendfile``.
"""

from collections.abc import Collection

from sparklog.broker.conversion.conversion_statistics import ConversionStatistics
from sparklog.broker.conversion.converting_reader import ConvertingReader
from sparklog.broker.conversion.cut_columns import CutColumns
from sparklog.broker.conversion.for_old_reader import format_of_fetch, messages_taken
from sparklog.broker.conversion.typed_rows import json_taken
from sparklog.broker.conversion.untyped_rows import as_records
from sparklog.broker.partition.answers import ReadRequest, ReadResult
from sparklog.broker.partition.partition import Partition
from sparklog.records.payload_kinds import ARROW_VERSION, TYPED_ARROW_VERSION, takes_arrow


class Reader:
    """The client that sent one fetch."""

    def __init__(self, fetch_version: int, payload_kinds: Collection[int], bytes_max: int) -> None:
        """``payload_kinds`` are those of the fetch, ``bytes_max`` its limit for all partitions."""
        self._form = format_of_fetch(fetch_version)
        self._payload_kinds = payload_kinds
        self._converter = ConvertingReader(bytes_max)
        self._cut = CutColumns()

    def take(self, partition: Partition, read: ReadRequest, result: ReadResult) -> ReadResult:
        """``result``, read from ``partition`` as asked by ``read``, with the bytes that this client is given.

        Raises:
            CorruptBatch: the first batch is damaged.
            OSError: the log cannot be read.
        """
        if self._form is not None:
            return messages_taken(self._form, self._converter, partition, read, result)
        version = TYPED_ARROW_VERSION if partition.is_typed else ARROW_VERSION
        if takes_arrow(self._payload_kinds, version):
            if read.columns is not None:
                return self._cut.take(self._converter, partition, read, result)
            return result
        if partition.is_typed:
            return json_taken(self._converter, partition, read, result)
        return result._replace(parts=tuple(as_records(result.parts)))

    def count_in(self, statistics: ConversionStatistics) -> None:
        """Count what was converted of the records of this fetch."""
        if self._form is not None:
            statistics.count_fetched(self._converter.converted)
        elif self._converter.converted:
            statistics.count_json_rows(self._converter.converted)
        cut = self._cut
        if cut.batches or cut.passed_over:
            statistics.count_cut(cut.batches, cut.left_out_bytes, cut.passed_over)
