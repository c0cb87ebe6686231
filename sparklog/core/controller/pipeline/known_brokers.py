"""Where each broker ran when it was last seen, kept for the time when it is away."""

from dataclasses import replace
from typing import Final

from sparklog.core.controller.events.cluster_event import ClusterEvent, EventKind
from sparklog.core.controller.state.applications import (
    Application,
    HostedBroker,
    KnownBroker,
    encode_known,
    host_of,
    known_broker_path,
)
from sparklog.core.controller.state.image import BrokerNoted, ClusterImage
from sparklog.core.controller.steps import Decision, NoteBrokers
from sparklog.model.ids import BrokerId
from sparklog.model.zookeeper import Create, Operation, SetData

BROKERS_PER_WRITE_MAX: Final = 500
SAID_BY_APPLICATIONS: Final = ("no executor", "crash loop")
"""States of which only the application knows: the controller sees itself who registers and who leaves."""


def decide_notes(image: ClusterImage, step: NoteBrokers) -> Decision | None:
    """A write for those live brokers of the step that ran elsewhere before; None if there are none."""
    operations: list[Operation] = []
    changes: list[BrokerNoted] = []
    for broker in step.brokers[:BROKERS_PER_WRITE_MAX]:
        before = image.known.get(broker, KnownBroker())
        after = _known_now(image, broker, before)
        if after is None or (after == before and before.version >= 0):
            continue
        path, data = known_broker_path(broker), encode_known(after)
        operations.append(Create(path, data) if before.version < 0 else SetData(path, data, before.version))
        changes.append(BrokerNoted(broker, replace(after, version=before.version + 1)))
    rest = step.brokers[BROKERS_PER_WRITE_MAX:]
    if not operations:
        return decide_notes(image, NoteBrokers(rest)) if rest else None
    return Decision(step, tuple(operations), tuple(changes), rest=NoteBrokers(rest) if rest else None)


def _known_now(image: ClusterImage, broker: BrokerId, before: KnownBroker) -> KnownBroker | None:
    """None if the broker is not alive."""
    live = image.brokers.get(broker)
    if live is None:
        return None
    endpoint = next(iter(live.broker.endpoints.values()), None)
    host = before.host if endpoint is None else endpoint.host
    application = host_of(image.applications, broker)
    if application is None:
        return replace(before, host=host)
    return replace(before, host=host, application=application.name, release=application.release)


def application_events(before: tuple[Application, ...], after: tuple[Application, ...]) -> list[ClusterEvent]:
    """Applications that came and went, and what they say of brokers that do not serve."""
    known, now = {one.name: one for one in before}, {one.name: one for one in after}
    events = [_event(now[name], "runs") for name in now if name not in known]
    events += [_event(known[name], "ended") for name in known if name not in now]
    for name, application in now.items():
        earlier = {} if name not in known else {one.broker_id: one for one in known[name].brokers}
        events += [
            _hosted_event(hosted)
            for hosted in application.brokers
            if _has_news(hosted, earlier.get(hosted.broker_id))
        ]
    return events


def _event(application: Application, words: str) -> ClusterEvent:
    return ClusterEvent(
        EventKind.application,
        application.name,
        f"application {application.name} on {application.host} {words}",
        brokers=tuple(one.broker_id for one in application.brokers),
    )


def _has_news(hosted: HostedBroker, before: HostedBroker | None) -> bool:
    is_same = before is not None and (before.state, before.reason) == (hosted.state, hosted.reason)
    return hosted.state in SAID_BY_APPLICATIONS and bool(hosted.reason) and not is_same


def _hosted_event(hosted: HostedBroker) -> ClusterEvent:
    subject = f"broker {hosted.broker_id}"
    return ClusterEvent(
        EventKind.broker,
        subject,
        f"{subject}: {hosted.state}",
        hosted.reason,
        brokers=(hosted.broker_id,),
        is_warning=True,
    )
