"""The HTTP server of the page: uvicorn on a listening socket, until it is stopped or has had no use.

A hundred tabs share at most ``CONNECTIONS_MAX`` connections; the next one is answered with 503. A stop waits
a moment for answers that are under way, never for a connection that is only kept open.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import nullcontext, suppress
from time import monotonic
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

CONNECTIONS_MAX: Final = 64
KEEP_ALIVE_S: Final = 10
LAST_ANSWERS_S: Final = 2
LOOK_EVERY_S: Final = 1.0


class PageServer:
    """``serve`` blocks until ``stop``, or until ``is_over`` says so; it looks once a second."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        is_over: Callable[[float], bool] = lambda _: False,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """``is_over`` gets the seconds since the last request; ``tls`` the context of each start."""
        self._app = app
        self._is_over = is_over
        self._used_s = monotonic()
        config = uvicorn.Config(
            self._count_use,
            interface="asgi3",
            http="h11",
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS_MAX,
            ssl_context_factory=None if tls is None else lambda *_: tls(),
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=LAST_ANSWERS_S,
        )
        self._server = _WithoutSignals(config)

    def serve(self, listening: socket.socket) -> None:
        asyncio.run(self._serve(listening))

    def stop(self) -> None:
        """May be called from any thread, or by a handler of a signal."""
        self._server.should_exit = True

    async def _serve(self, listening: socket.socket) -> None:
        watching = asyncio.create_task(self._watch())
        try:
            await self._server.serve(sockets=[listening])
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching

    async def _watch(self) -> None:
        while not self._is_over(monotonic() - self._used_s):
            await asyncio.sleep(LOOK_EVERY_S)
        self.stop()

    async def _count_use(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._used_s = monotonic()
        await self._app(scope, receive, send)


class _WithoutSignals(uvicorn.Server):
    """A server that leaves signals to the program that runs it."""

    def capture_signals(self) -> Any:
        return nullcontext()
