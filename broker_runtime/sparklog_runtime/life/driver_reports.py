"""What a driver reports while it runs: events to a file, and the state of its brokers to the cluster."""

from collections.abc import Callable, Mapping
from pathlib import Path

from sparklog.core.controller.state.applications import HostedBroker
from sparklog.model.settings.config import BrokerConfig
from sparklog_runtime.driver_servers.servers import Controller
from sparklog_runtime.life.events_file import EventsFile
from sparklog_runtime.settings.settings_check import quiet_warnings, settings_warnings
from sparklog_runtime.settings.spark_security import missing_security
from sparklog_runtime.supervision.supervisor import Supervisor


class DriverReports:
    """``look`` again and again, ``close`` at the end; for one thread at a time."""

    def __init__(
        self,
        events_file: Path,
        parts: Callable[[], tuple[Controller | None, Supervisor | None]],
    ) -> None:
        """``parts``: the driver's controller and supervisor, as far as there are any now."""
        self._parts = parts
        self._events_file = EventsFile(events_file)
        self._hosted: list[HostedBroker] = []
        self._spark_warnings: tuple[str, ...] = ()

    def note_spark(
        self, conf: Mapping[str, str], master: str, config: BrokerConfig, *, is_here: bool
    ) -> list[str]:
        """Tell the cluster, too, what Spark's ``conf`` lacks for the good of brokers; before there are any to
        report of. Returns what is worth a line at the start.
        """
        shown = settings_warnings(conf)
        hidden = [*quiet_warnings(conf, master), *missing_security(conf, config, is_here=is_here)]
        self._spark_warnings = (*shown, *hidden)
        return shown

    def look(self) -> None:
        """Write our controller's new events, and tell the cluster how our brokers are if that has changed."""
        controller, supervisor = self._parts()
        if controller is None:
            return
        self._events_file.write(controller.events())
        hosted = [] if supervisor is None else supervisor.hosted()
        if hosted and hosted != self._hosted:
            self._hosted = hosted
            controller.publish(hosted, self._spark_warnings)

    def close(self) -> None:
        """Write what is left."""
        self.look()
        self._events_file.close()
