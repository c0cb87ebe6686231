"""How many records were converted between message formats, rows into JSON, and batches cut, for metrics."""

from sparklog.model.ports import Guard


class ConversionStatistics:
    """Counted by any thread."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.produced = 0
        """Records of producers that sent message format 0 or 1."""
        self.fetched = 0
        """Records for readers that know only message format 0 or 1."""
        self.json_rows = 0
        """Rows of typed topics for readers that know only Kafka's records."""
        self.cut_batches = 0
        """Batches of typed topics for readers that named columns."""
        self.cut_bytes = 0
        """What these batches have on disk, and the readers did not want."""
        self.passed_over = 0
        """Batches of typed topics without a row that its reader wanted."""

    def count_produced(self, records: int) -> None:
        with self._guard:
            self.produced += records

    def count_fetched(self, records: int) -> None:
        with self._guard:
            self.fetched += records

    def count_json_rows(self, rows: int) -> None:
        with self._guard:
            self.json_rows += rows

    def count_cut(self, batches: int, left_out_bytes: int, passed_over: int) -> None:
        with self._guard:
            self.cut_batches += batches
            self.cut_bytes += left_out_bytes
            self.passed_over += passed_over
