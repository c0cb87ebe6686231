"""``DIR/logs/events.jsonl``: the events of the controller, while its driver is in office, an object a line.

It outlives the terms, whose events the controller forgets, and is rolled as our logs are. A line has what
``sparklog events --json`` prints. Lines are written by the thread that keeps ``cluster.json`` current, so
that a slow disk delays no decision; those of the last moment are lost if the driver dies.
"""

import json
import logging
from pathlib import Path
from typing import Final

from sparklog.core.controller.events.cluster_event import NumberedEvent
from sparklog_runtime.settings.log_files import LogFile

NAME: Final = "sparklog.events-file"


class EventsFile:
    """``write`` what is new, as often as wanted; ``close``."""

    def __init__(self, path: Path) -> None:
        self._handler = LogFile(path)
        self._last = (-1, 0)
        """Term and number of the last event that was written."""

    def write(self, events: tuple[NumberedEvent, ...]) -> None:
        """Write those of ``events``, oldest first, that were not written yet."""
        if not events or (events[-1].term, events[-1].number) <= self._last:
            return
        for event in events:
            if (event.term, event.number) > self._last:
                line = json.dumps(event.as_json())
                self._handler.handle(logging.LogRecord(NAME, logging.INFO, "", 0, line, None, None))
        self._last = events[-1].term, events[-1].number

    def close(self) -> None:
        self._handler.close()
