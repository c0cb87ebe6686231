"""The routes of the page: its views, their JSON, and what a watcher of processes asks.

Each path of a view is there twice: as the page itself, which is the same document for all, and below
``/api`` as the JSON that it shows.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sparklog.client.errors import ClusterUnavailable, LoginDenied, SecurityRefused
from sparklog.model.errors import ErrorCode, KafkaError, SparklogError
from sparklog.web.cluster_metrics import cluster_metrics
from sparklog.web.cluster_ready import readiness
from sparklog.web.gate import Gate
from sparklog.web.page_logins import NeedsLogin
from sparklog.web.page_settings import PageSettings
from sparklog.web.view_question import BadQuestion, NothingThere, Question
from sparklog.web.viewer import Viewer
from sparklog.web.views.broker_views import broker, brokers
from sparklog.web.views.doctor_view import doctor
from sparklog.web.views.event_rows import events
from sparklog.web.views.group_views import groups
from sparklog.web.views.operation_rows import operations
from sparklog.web.views.overview import overview
from sparklog.web.views.record_views import Octets, record_part, records
from sparklog.web.views.topic_list import topics
from sparklog.web.views.topic_view import topic

STATIC: Final = Path(__file__).parent / "static"

View = Callable[[Viewer, Question], Mapping[str, object] | Octets]


class Viewers(Protocol):
    """Who answers requests."""

    @property
    def needs_login(self) -> bool: ...
    def of_request(self, authorization: str | None) -> Viewer:
        """The viewer of a header ``Authorization``; NeedsLogin if there is none for it."""
        ...

    def anyone(self) -> Viewer | None:
        """A viewer for what names nothing; None while nobody has logged in."""
        ...

    def refused(self, viewer: Viewer) -> None:
        """The brokers do not let this viewer log in any more."""
        ...


VIEWS: Final[Mapping[str, View]] = {
    "/": overview,
    "/brokers": brokers,
    "/brokers/{broker}": broker,
    "/topics": topics,
    "/topics/{topic}": topic,
    "/topics/{topic}/records": records,
    "/groups": groups,
    "/events": events,
    "/operations": operations,
    "/doctor": doctor,
}

ONLY_JSON: Final[Mapping[str, View]] = {
    "/topics/{topic}/records/{partition}/{offset}/{part}": record_part,
}
"""What a view's links lead to, without a view of its own."""
RECORDS: Final = "/topics/{topic}/records"

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus's text format."""

STATUS_OF_CODES: Final = {
    ErrorCode.unknown_topic_or_partition: 404,
    ErrorCode.offset_out_of_range: 404,
    ErrorCode.topic_authorization_failed: 403,
    ErrorCode.group_authorization_failed: 403,
    ErrorCode.cluster_authorization_failed: 403,
    ErrorCode.invalid_topic_exception: 400,
}


def build_app(viewers: Viewers, settings: PageSettings) -> Starlette:
    document = (STATIC / "index.html").read_text(encoding="utf-8")
    routes = [
        Route("/health", _health, methods=["GET"]),
        Route("/ready", _ready_of(viewers), methods=["GET"]),
        Route("/metrics", _answering(viewers, _metrics), methods=["GET"]),
        Mount("/static", StaticFiles(directory=STATIC)),
    ]
    for path, view in {**VIEWS, **ONLY_JSON}.items():
        shown = _without_records if path.startswith(RECORDS) and not settings.shows_records else view
        routes.append(Route(f"/api{path}", _answering(viewers, _json_of(shown)), methods=["GET"]))
    routes += [Route(path, _document_of(viewers, document), methods=["GET"]) for path in VIEWS]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Gate, settings=settings)],
        exception_handlers={404: _not_found},
    )


def _without_records(_: Viewer, __: Question) -> Mapping[str, object]:
    raise KafkaError(ErrorCode.topic_authorization_failed, "this page shows no records: web.records=false")


def _health(_: Request) -> Response:
    return PlainTextResponse("ok\n")


def _ready_of(viewers: Viewers) -> Callable[[Request], Response]:
    """It needs no user and names nothing; who knows it is any viewer that there is."""

    def endpoint(_: Request) -> Response:
        viewer = viewers.anyone()
        if viewer is None:
            return PlainTextResponse("not known before somebody has logged in\n", 503)
        try:
            ready, words = readiness(viewer)
        except (OSError, SparklogError):
            return PlainTextResponse("the controller's report cannot be had\n", 503)
        return PlainTextResponse(f"{words}\n", 200 if ready else 503)

    return endpoint


def _metrics(viewer: Viewer, _: Question) -> Response:
    return Response(cluster_metrics(viewer), media_type=METRICS_TYPE)


def _json_of(view: View) -> Callable[[Viewer, Question], Response]:
    def respond(viewer: Viewer, question: Question) -> Response:
        found = view(viewer, question)
        if not isinstance(found, Octets):
            return JSONResponse(found)
        kept = {"Content-Disposition": f'attachment; filename="{found.name}"'}  # a topic's name has no quotes
        return Response(found.data, media_type="application/octet-stream", headers=kept)

    return respond


def _answering(
    viewers: Viewers, respond: Callable[[Viewer, Question], Response]
) -> Callable[[Request], Response]:
    """An endpoint, run on a thread of its own; what goes wrong is an answer, too."""

    def endpoint(request: Request) -> Response:
        question = Question(dict(request.path_params), dict(request.query_params))
        viewer: Viewer | None = None
        try:
            viewer = viewers.of_request(request.headers.get("authorization"))
            return respond(viewer, question)
        except NeedsLogin as error:
            return _ask_for_login(error)
        except LoginDenied as error:
            if viewer is None or not viewers.needs_login:
                return JSONResponse({"error": str(error)}, status_of(error))
            viewers.refused(viewer)  # a password was changed, or a user deleted
            return _ask_for_login(error)
        except SparklogError as error:
            return JSONResponse({"error": str(error)}, status_of(error))
        except OSError as error:
            return JSONResponse({"error": f"a broker did not answer: {error}"}, 503)

    return endpoint


def status_of(error: SparklogError) -> int:
    """The status of HTTP for an error whose text is shown."""
    if isinstance(error, BadQuestion):
        return 400
    if isinstance(error, NothingThere):
        return 404
    if isinstance(error, KafkaError):
        return STATUS_OF_CODES.get(error.code, 502)
    return 503 if isinstance(error, ClusterUnavailable | SecurityRefused) else 502


def _ask_for_login(error: SparklogError) -> Response:
    realm = {"WWW-Authenticate": 'Basic realm="sparklog", charset="UTF-8"'}
    return JSONResponse({"error": str(error)}, 401, realm)


def _document_of(viewers: Viewers, document: str) -> Callable[[Request], Response]:
    """The page, which finds its own parts by a base that is relative: it works below a proxy's prefix too.

    A browser asks for name and password when a page wants them, and sends them along with what its scripts
    ask for.
    """

    def endpoint(request: Request) -> Response:
        try:
            viewers.of_request(request.headers.get("authorization"))
        except NeedsLogin as error:
            return _ask_for_login(error)
        except SparklogError:
            pass  # no broker answers, which the page itself says best
        depth = request.scope["path"].count("/") - 1
        return HTMLResponse(document.replace("{{base}}", "../" * depth or "./"))

    return endpoint


def _not_found(request: Request, _: Any) -> Response:
    words = "the page has no such view; it begins at /"
    if request.scope["path"].startswith("/api"):
        return JSONResponse({"error": words}, 404)
    return PlainTextResponse(f"{words}\n", 404)
