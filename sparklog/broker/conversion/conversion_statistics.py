"""How many records were converted between message formats, and rows into JSON, for metrics."""

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

    def count_produced(self, records: int) -> None:
        with self._guard:
            self.produced += records

    def count_fetched(self, records: int) -> None:
        with self._guard:
            self.fetched += records

    def count_json_rows(self, rows: int) -> None:
        with self._guard:
            self.json_rows += rows
