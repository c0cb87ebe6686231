"""The last warnings and errors of a process, kept for those who ask after them.

Each is cut to ``WORDS_MAX`` characters, so that all of them take less than 1 MB. What is no Unicode text, as
in a file's name, is replaced. Brokers that share a process, as in tests, share their warnings too.
"""

import logging
from collections import deque
from typing import Final, NamedTuple

WARNINGS_KEPT_MAX: Final = 500
WORDS_MAX: Final = 1_000


class KeptWarning(NamedTuple):
    number: int
    time_ms: int
    level: str
    logger: str
    words: str


class KeptWarnings(logging.Handler):
    """A handler of the root logger, between ``begin`` and ``end``. Twice is fine."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: deque[KeptWarning] = deque(maxlen=WARNINGS_KEPT_MAX)
        self._count = 0

    def begin(self) -> None:
        logging.getLogger().addHandler(self)

    def end(self) -> None:
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """``logging`` calls this under the handler's lock."""
        try:
            words = record.getMessage()
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                words = f"{words}: {type(error).__name__}: {error}"
        except Exception:  # noqa: BLE001 (a logger's caller goes on, whatever it has logged)
            self.handleError(record)
            return
        self._count += 1
        self._kept.append(
            KeptWarning(
                self._count,
                int(record.created * 1_000),
                record.levelname,
                record.name,
                words[:WORDS_MAX].encode("utf-8", "replace").decode("utf-8"),
            )
        )

    @property
    def last(self) -> int:
        """The number of the newest; 0 without any."""
        return self._count

    def after(self, number: int, at_most: int) -> list[KeptWarning]:
        """The newest ``at_most`` after ``number``, exclusive; the oldest of them first."""
        kept = [one for one in list(self._kept) if one.number > number]
        return kept[max(0, len(kept) - max(0, at_most)) :]
