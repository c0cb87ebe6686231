"""Settings that differ between brokers. PURE.

A partition's leader decides by its own settings, and the controller in office by its own: where they differ,
behaviour changes with each election.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from sparklog.cli.cluster.doctor.doctor_check import Check
from sparklog.cli.cluster.doctor.doctor_facts import ClusterFacts, Part
from sparklog.cli.cluster.doctor.doctor_finding import Finding, Severity, named
from sparklog.model.settings.settings_table import IDENTITY_SETTINGS

NAME: Final = "settings"

OF_ITS_OWN: Final = IDENTITY_SETTINGS.keys() - {"zookeeper.connect"} | {
    "audit.log.dir",
    "broker.rack",
    "controller.port",
    "hosts.file",
    "log.dir",
    "metrics.port",
    "supervisor.port",
}
"""Settings that are rightly another one at each broker; files and the page's settings are, too."""
OF_ITS_HOST: Final = (".location", ".ssl.keystore.key", ".certificate.chain")
OF_THE_PAGE: Final = "web."

DURABILITY: Final = frozenset(
    {
        "default.replication.factor",
        "log.flush.acks",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.retention.bytes",
        "log.retention.ms",
        "min.insync.replicas",
        "offsets.topic.replication.factor",
        "replica.lag.time.max.ms",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
        "unclean.leader.election.enable",
        "zookeeper.connect",
        "zookeeper.session.timeout.ms",
    }
)
"""Settings on which it depends what is kept: a difference is a warning."""


def examine_settings(facts: ClusterFacts) -> Iterator[Finding]:
    settings = {broker.broker_id: broker.settings for broker in facts.answering}
    names = sorted({name for one in settings.values() for name in one})
    for name in sorted(names, key=lambda one: one not in DURABILITY):
        brokers_by_value = _by_value(name, settings)
        if len(brokers_by_value) > 1 and not _is_of_its_own(name):
            yield _different(name, brokers_by_value, facts.options)


def _by_value(name: str, settings: Mapping[int, Mapping[str, str]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for broker, values in sorted(settings.items()):
        found.setdefault(values.get(name, ""), []).append(broker)
    return found


def _is_of_its_own(name: str) -> bool:
    return name in OF_ITS_OWN or name.startswith(OF_THE_PAGE) or name.endswith(OF_ITS_HOST)


def _different(name: str, brokers_by_value: Mapping[str, list[int]], options: str) -> Finding:
    is_warned = name in DURABILITY
    values = "; ".join(
        f"{value or '(empty)'} at {named('broker', brokers)}" for value, brokers in brokers_by_value.items()
    )
    return Finding(
        NAME,
        Severity.warning if is_warned else Severity.note,
        name,
        values,
        "what is kept depends on which broker leads" if is_warned else "brokers behave differently",
        f"one value in all settings files, then: sparklog brokers restart --all {options}; where it was "
        f"changed while brokers run: sparklog configs describe --all-brokers {options}",
    )


SETTINGS: Final = Check(
    NAME, (Part.brokers,), "brokers have the same settings, but for those of their own", examine_settings
)
