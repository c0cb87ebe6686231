"""Brokers that are launched again, and those that stay stopped."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sparklog.core.controller.state.wishes import Wish, WishedBroker
from sparklog.model.errors import ConfigError
from sparklog.model.listeners import LISTENERS, Listeners
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.settings.coordinator_settings import of_a_start
from sparklog_runtime.broker_process.broker_plan import BrokerPlan
from sparklog_runtime.start.cluster_options import ClusterOptions


@dataclass(frozen=True, slots=True)
class RenewedPlans:
    """Plans of brokers that are launched again, with the settings file as it is by then.

    ``chosen``: settings that the start chose beside those of the options. ``listeners``: of the start.
    """

    options: ClusterOptions
    chosen: Mapping[str, str]
    listeners: Listeners

    def renew(self, plan: BrokerPlan) -> BrokerPlan:
        """ConfigError for settings that cannot be, or that need another driver."""
        settings = {**self.options.settings_now(), **self.chosen}
        if BrokerConfig.parse(settings).listeners != self.listeners:
            raise ConfigError(
                f"{self.options.settings_file}: {LISTENERS} and their security are not those of the start; "
                "for that, stop the application and start it again"
            )
        return replace(plan, settings=of_a_start(settings, self.options.brokers))


def stopped_in_words(wished: Mapping[int, WishedBroker], root: Path) -> list[str]:
    """A line for each broker that stays stopped, with the command that starts it."""
    return [
        f"broker {broker_id} stays {one.wish}; start it with: "
        f"sparklog brokers start {broker_id} --root {shlex.quote(str(root))}"
        for broker_id, one in sorted(wished.items())
        if one.wish is not Wish.serving
    ]
