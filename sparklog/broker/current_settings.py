"""The settings of a broker while it runs.

The dynamic settings, which the controller sends with UpdateMetadata, override those of the start. A part of
the broker that keeps a setting, instead of reading it at each use, registers a listener (``on_change``).
"""

import logging
from collections.abc import Callable
from typing import Final

from sparklog.model.settings.config import BrokerConfig, DynamicConfigs, check_dynamic_settings

logger: Final = logging.getLogger(__name__)

SettingsListener = Callable[[BrokerConfig], None]
"""Called with all settings after some have changed."""


class CurrentSettings:
    """Read by any thread; changed by one at a time."""

    def __init__(self, at_start: BrokerConfig) -> None:
        self.at_start = at_start
        self.dynamic = DynamicConfigs()
        self.now = at_start
        """The settings that are in effect. The object is replaced, never changed."""
        self._listeners: list[SettingsListener] = []

    def on_change(self, listener: SettingsListener) -> None:
        """Call ``listener`` after each change from now on."""
        self._listeners.append(listener)

    def change(self, dynamic: DynamicConfigs) -> None:
        """Let ``dynamic`` be the dynamic settings. One that cannot be used is logged and left out."""
        self.dynamic = dynamic
        for warning in check_dynamic_settings(dynamic.merged).warnings:
            logger.error("%s", warning)
        self.now = self.at_start.with_dynamic(dynamic.merged)
        for listener in self._listeners:
            listener(self.now)
