"""Who hosts brokers: the applications that run now, and the brokers that have ever registered.

``/applications/NAME`` is ephemeral. The driver of an application writes there who it is, and the state of
each broker that it hosts, as its supervisor sees it; at most once a second. ``/brokers/known/N`` is
persistent. The controller writes there where a broker ran when it was last seen, so that one that is away is
named with its host and application; and what is wished of it, which its application obeys.

Names of applications are quoted in paths, because they may have slashes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from urllib.parse import quote, unquote

from sparklog.core.controller.state.node_json import bad_node, decode_node, encode_node
from sparklog.core.controller.state.wishes import Wish
from sparklog.model.ids import BrokerId

APPLICATIONS: Final = "/applications"
KNOWN_BROKERS: Final = "/brokers/known"
WARNINGS_MAX: Final = 20
REASON_CHARACTERS_MAX: Final = 300
"""So that the node of an application with a thousand brokers stays below ZooKeeper's limit of 1 MB."""


@dataclass(frozen=True, slots=True)
class HostedBroker:
    """A broker as the supervisor of its application sees it. ``since_ms``: when it came into this state, in
    milliseconds since 1970. ``relaunches`` are those since the application began. ``starts``: the wish's, as
    in ``KnownBroker``, that the supervisor has obeyed.
    """

    broker_id: BrokerId
    state: str
    reason: str = ""
    since_ms: int = -1
    relaunches: int = 0
    starts: int = 0


@dataclass(frozen=True, slots=True)
class Application:
    """An application that runs. ``host`` and ``port`` are those of its controller's listener."""

    name: str
    host: str
    port: int
    pid: int = 0
    release: str = ""
    web_url: str = ""
    brokers: tuple[HostedBroker, ...] = ()
    spark_warnings: tuple[str, ...] = ()
    """What its Spark settings lack for the good of its brokers, each with what to set."""

    def hosted(self, broker: BrokerId) -> HostedBroker | None:
        return next((one for one in self.brokers if one.broker_id == broker), None)


@dataclass(frozen=True, slots=True)
class KnownBroker:
    """A broker that has registered. ``version`` is that of its node; -1 while it has none, as those that have
    not registered since an earlier release. ``starts``: how often a start was asked for, so that its
    application starts it now also where it would have waited.
    """

    host: str = ""
    application: str = ""
    release: str = ""
    version: int = -1
    wish: Wish = Wish.serving
    starts: int = 0


def application_path(name: str) -> str:
    return f"{APPLICATIONS}/{quote(name, safe='')}"


def known_broker_path(broker: BrokerId) -> str:
    return f"{KNOWN_BROKERS}/{broker}"


def encode_application(application: Application) -> bytes:
    """Without the name, which the path has."""
    shortened = [replace(one, reason=one.reason[:REASON_CHARACTERS_MAX]) for one in application.brokers]
    warnings = [text[:REASON_CHARACTERS_MAX] for text in application.spark_warnings[:WARNINGS_MAX]]
    document = {
        "version": 1,
        **asdict(application),
        "brokers": [asdict(one) for one in shortened],
        "spark_warnings": warnings,
    }
    del document["name"]
    return encode_node(document)


def decode_application(node_name: str, data: bytes) -> Application:
    """``node_name`` is the last part of the node's path."""
    path = f"{APPLICATIONS}/{node_name}"
    document = decode_node(path, data)
    try:
        return Application(
            name=unquote(node_name),
            host=str(document["host"]),
            port=int(document["port"]),
            pid=int(document["pid"]),
            release=str(document["release"]),
            web_url=str(document.get("web_url", "")),
            spark_warnings=tuple(map(str, document.get("spark_warnings", ()))),
            brokers=tuple(_hosted(one) for one in document["brokers"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise bad_node(path, data, error) from None


def _hosted(entry: Mapping[str, Any]) -> HostedBroker:
    return HostedBroker(
        BrokerId(int(entry["broker_id"])),
        str(entry["state"]),
        str(entry["reason"]),
        int(entry["since_ms"]),
        int(entry["relaunches"]),
        int(entry.get("starts", 0)),
    )


def encode_known(known: KnownBroker) -> bytes:
    return encode_node(
        {
            "version": 1,
            "host": known.host,
            "application": known.application,
            "release": known.release,
            "wish": known.wish.value,
            "starts": known.starts,
        }
    )


def decode_known(broker: BrokerId, data: bytes, version: int) -> KnownBroker:
    path = known_broker_path(broker)
    document = decode_node(path, data)
    try:
        return KnownBroker(
            str(document["host"]),
            str(document["application"]),
            str(document["release"]),
            version,
            Wish(document.get("wish", Wish.serving)),
            int(document.get("starts", 0)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise bad_node(path, data, error) from None


def host_of(applications: Sequence[Application], broker: BrokerId) -> Application | None:
    """The application that hosts the broker; of two that claim it, the one that says it serves."""
    claiming = [one for one in applications if one.hosted(broker) is not None]
    serving = [one for one in claiming if (hosted := one.hosted(broker)) and hosted.state == "serving"]
    return next(iter(serving or claiming), None)
