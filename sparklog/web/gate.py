"""What every request passes before a view sees it, and what every answer carries.

The page listens on loopback, where any site that the same browser shows can send requests to it. So a
request is refused unless it is a GET, unless its Host is one that the page is known by (a foreign name that
resolves to our address is DNS rebinding), and unless the browser says that it comes from the page itself. A
link elsewhere may lead to a view, but not to data.
"""

from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparklog.web.page_settings import PageSettings

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
FROM_THE_PAGE: Final = ("same-origin", "none")
"""``none``: typed, or from a bookmark."""
WITHOUT_SITE: Final = ("/health", "/ready")
"""They name nothing, and are for those who watch from elsewhere."""


class Gate:
    """ASGI middleware; see the module."""

    def __init__(self, app: ASGIApp, settings: PageSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if scope["method"] != "GET":
            words = f"the page reads only: GET, and not {scope['method']}"
            return JSONResponse({"error": words}, 405, {"Allow": "GET"})
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._settings.is_allowed(hosts[0]):
            words = f"this page is not known as {_listed(hosts)}; web.allowed.hosts names further hosts"
            return JSONResponse({"error": words}, 421)
        site = headers.get("sec-fetch-site", "none")
        if site not in FROM_THE_PAGE and scope["path"] not in WITHOUT_SITE and not _is_link(scope, headers):
            return JSONResponse({"error": f"a request of another site ({site}) gets no data"}, 403)
        return None


def _is_link(scope: Scope, headers: Headers) -> bool:
    """Whether a person followed a link to a view, which holds no data before its own scripts ask."""
    goes = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return goes and not scope["path"].startswith(("/api", "/metrics"))


def _listed(hosts: Iterable[str]) -> str:
    return ", ".join(repr(host[:100]) for host in hosts) or "nothing"
