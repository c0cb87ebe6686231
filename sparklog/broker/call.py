"""One request in a handler's hands: who asks, in which version, of which broker, and the way to answer."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparklog.broker.context import BrokerContext
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.wire.codec import RequestHeader, encode_response

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    header: RequestHeader
    exchange: Exchange
    broker: BrokerContext

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def frame(self) -> memoryview:
        """The whole request, header included, for those who forward it."""
        return self.exchange.frame

    @property
    def context(self) -> RequestContext:
        """Principal and address of who asks: every handler has them at hand."""
        return self.exchange.context

    def carefully(self, work: Callable[[], None]) -> None:
        """Do ``work``, which answers, where no handler is left that would see it fail: the client gets a
        closed connection then, instead of waiting for ever.
        """
        try:
            work()
        except Exception:
            logger.exception("a request of API %d could not be answered", self.header.api_key)
            self.exchange.abandon()

    def reply(self, response: Any, throttle_ms: int = 0) -> None:
        self.exchange.reply(
            encode_response(response, self.header.api_version, self.header.correlation_id), throttle_ms
        )
