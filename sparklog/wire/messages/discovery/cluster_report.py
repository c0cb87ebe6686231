"""ClusterReport (key 10004, sparklog's own): what the active controller knows of the cluster.

The controller answers on its own listener, and each broker from a copy that is a second old at most while a
controller can be asked; ``age_ms`` says how old. Nothing waits for news: who follows asks again, and names
the last event that it has.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.broker_report import ReportedMetric


@dataclass(slots=True, kw_only=True)
class ClusterReportRequest:
    """``after_term`` and ``after_number``: the last event that the requester has; -1 and 0 without any.
    ``events_max`` 0: it wants none. ``wants_metrics``: of the controller.
    """

    API_KEY: ClassVar[int] = 10_004

    after_term: int = -1
    after_number: int = 0
    events_max: int = 0
    wants_metrics: bool = False


@dataclass(slots=True, kw_only=True)
class ReportedController:
    """A candidate for the office; ``is_active``: the one that holds it. Null is what nobody knows.

    ``spark_warnings``: what the Spark settings of its application lack for the good of brokers.
    """

    application: str
    host: str
    port: int
    is_active: bool
    release: str | None = None
    web_url: str | None = None
    spark_warnings: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReportedBroker:
    """A broker that has registered. Null, or -1 in a number, is what nobody knows.

    ``since_ms``: since when it is in this state, in milliseconds since 1970.
    """

    broker_id: int
    host: str | None = None
    port: int = -1
    rack: str | None = None
    application: str | None = None
    release: str | None = None
    state: str = ""
    reason: str | None = None
    since_ms: int = -1
    relaunches: int = -1
    leaders: int = 0
    replicas: int = 0
    in_sync: int = 0
    wish: str = ""


@dataclass(slots=True, kw_only=True)
class ReportedEvent:
    """``number`` rises by one within a ``term``, which is the controller's epoch."""

    term: int
    number: int
    time_ms: int
    kind: str
    subject: str
    cause: str = ""
    words: str = ""
    brokers: list[int] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    """The topics that the event names: it is withheld from those who may not describe them."""


@dataclass(slots=True, kw_only=True)
class ReportedWait:
    """What an operation waits for. It is withheld from those who may not describe the ``topics`` it names."""

    words: str
    topics: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class ReportedOperation:
    """An operation on brokers that is under way, or one of the last that ended."""

    id_: int
    kind: str
    brokers: list[int] = field(default_factory=list)
    state: str = ""
    reason: str | None = None
    done: int = 0
    total: int = 0
    waits: list[ReportedWait] = field(default_factory=list)
    requested_by: str = ""
    since_ms: int = -1


@dataclass(slots=True, kw_only=True)
class ClusterReportResponse:
    """``age_ms``: how long ago a controller that reached ZooKeeper said it. ``last_number``: of its
    newest event.
    """

    API_KEY: ClassVar[int] = 10_004

    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.none
    error_message: str | None = None
    age_ms: int = 0
    term: int = -1
    controllers: list[ReportedController] = field(default_factory=list)
    brokers: list[ReportedBroker] = field(default_factory=list)
    topics: int = 0
    partitions: int = 0
    leaderless: int = 0
    under_replicated: int = 0
    moving: int = 0
    last_number: int = 0
    events: list[ReportedEvent] = field(default_factory=list)
    operations: list[ReportedOperation] = field(default_factory=list)
    metrics: list[ReportedMetric] = field(default_factory=list)
