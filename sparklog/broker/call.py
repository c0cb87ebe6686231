"""One request in a handler's hands: who asks, in which version, of which broker, and the way to answer."""

from dataclasses import dataclass
from typing import Any

from sparklog.broker.context import BrokerContext
from sparklog.network.exchange import Exchange, RequestContext
from sparklog.wire.codec import RequestHeader, encode_response


@dataclass(frozen=True, slots=True)
class Call:
    """``frame`` is the whole request, header included, for those who forward it."""

    header: RequestHeader
    frame: memoryview
    exchange: Exchange
    broker: BrokerContext

    @property
    def version(self) -> int:
        return self.header.api_version

    @property
    def context(self) -> RequestContext:
        """Principal and address of who asks: every handler has them at hand."""
        return self.exchange.context

    def reply(self, response: Any, throttle_ms: int = 0) -> None:
        self.exchange.reply(
            encode_response(response, self.header.api_version, self.header.correlation_id), throttle_ms
        )
