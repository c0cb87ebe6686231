"""From a frame to its handler: decode, look up, call.

Requests between brokers and the controller are served on the listener that is named for brokers alone. A
broker with one listener serves all requests there.

Kafka's protocol has no error response to a request that cannot be decoded: the connection is closed. The
exception is ApiVersions: an unknown version is answered with the known versions, in the layout of version 0
(KIP-511).
"""

import logging
from dataclasses import replace
from typing import Any, Final

from sparklog.broker.admission import admit
from sparklog.broker.apis import HANDLERS
from sparklog.broker.call import Call
from sparklog.broker.client_quotas import ClientQuotas, RequestMeter
from sparklog.broker.context import BrokerContext
from sparklog.broker.handlers import api_versions
from sparklog.broker.handlers.transactions.add_partitions_to_txn import FIRST_BATCHED_VERSION
from sparklog.core.apis.api import Api, ListenerKind, Quota, Waits
from sparklog.core.apis.api_table import APIS, ROWS
from sparklog.core.security.audit import Audit
from sparklog.model.errors import ErrorCode, WireError
from sparklog.network.exchange import Exchange
from sparklog.wire.access.acts import act_at_broker
from sparklog.wire.codec import Request, UnsupportedVersion, encode_response
from sparklog.wire.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest
from sparklog.wire.versions import API_VERSIONS_KEY

logger: Final = logging.getLogger(__name__)

API_KEY_BYTES: Final = 2
"""The length of an API's key, with which a frame begins."""

_SHORT: Final = frozenset(api.key.to_bytes(API_KEY_BYTES, "big") for api in ROWS if api.is_short)
_BESIDE: Final = frozenset(api.key.to_bytes(API_KEY_BYTES, "big") for api in ROWS if api.begins_beside)

IN_PLACE_BYTES_MAX: Final = 64 * 1024
"""Larger batches take long to check, without the interpreter lock: handlers do that beside the processor."""


def begins_beside(frame: memoryview) -> bool:
    """Whether the request may begin while earlier ones of its connection wait: only a produce may."""
    return bytes(frame[:API_KEY_BYTES]) in _BESIDE


def works_in_place(frame: memoryview) -> bool:
    """Whether the request is short work: a small produce or a fetch, neither of which waits on its thread for
    other brokers. A fetch is small by itself, and its reply by what the log has; a cold page is its one risk.
    """
    return len(frame) <= IN_PLACE_BYTES_MAX and bytes(frame[:API_KEY_BYTES]) in _SHORT


SAID_BY_BROKERS: Final = frozenset({"WriteTxnMarkers"})
"""Acts of administration that brokers ask of each other all the time."""


class Dispatcher:
    """The reactor's handler of every request."""

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self.is_closed = False

    def close(self) -> None:
        """Serve no more requests: each further one closes its connection."""
        self.is_closed = True

    def __call__(self, exchange: Exchange) -> None:
        if self.is_closed:
            exchange.close()
            return
        try:
            request = exchange.decode()
        except UnsupportedVersion as error:
            if error.header.api_key == API_VERSIONS_KEY:
                response = api_versions.response(ErrorCode.unsupported_version)
                exchange.reply(encode_response(response, 0, error.header.correlation_id))
                return
            self._refuse(exchange, error)
            return
        except WireError as error:
            self._refuse(exchange, error)
            return
        key, listener = request.header.api_key, exchange.context.listener
        exchange.api_key = key
        api, handler = APIS[key], HANDLERS.get(key)
        if handler is None:
            self._refuse(exchange, WireError(f"{api.name} is not served by brokers"))
            return
        if self._kind_of(listener) not in api.listeners:
            self._refuse(exchange, WireError(f"{api.name} is not served on listener {listener}"))
            return
        quotas = self._broker.quotas
        meter = _meter(quotas, api, request, exchange) if quotas.is_active else None
        call, body = Call(request.header, exchange, self._broker, meter=meter), request.body
        control = self._broker.access_control
        if control is not None:
            admitted = admit(call, control, api, body)
            if admitted is None:
                return
            call, body = admitted
        if self._broker.audit is not None:
            call = self._audited(call, api, body, self._broker.audit)
        if api.waits is Waits.first_report and not self._broker.metadata.is_received:
            self._broker.first_report.wait(
                lambda: call.carefully(lambda: call.work(handler, body)), exchange.close
            )
        elif api.waits is Waits.controller:
            self._broker.waiting_room.submit(lambda: call.carefully(lambda: call.work(handler, body)))
        else:
            call.work(handler, body)

    def _audited(self, call: Call, api: Api, body: Any, audit: Audit) -> Call:
        """The call, which is noted when it is answered if it is an act of administration. What brokers tell
        each other is none.
        """
        requester, client_id = call.context.requester, call.header.client_id or ""
        is_of_brokers = api.name in SAID_BY_BROKERS and call.context.listener == self._broker.brokers_listener
        act = None if is_of_brokers else act_at_broker(api, body)
        if act is None:
            return call
        return replace(
            call, on_answer=lambda errors: audit.acted(requester, client_id, api.name, act, errors)
        )

    def _kind_of(self, listener: str) -> ListenerKind:
        is_brokers = listener == self._broker.brokers_listener
        return ListenerKind.brokers if is_brokers else ListenerKind.clients

    @staticmethod
    def _refuse(exchange: Exchange, error: WireError) -> None:
        logger.warning("closing the connection from %s: %s", exchange.context.client_host, error)
        exchange.close()


def _meter(quotas: ClientQuotas, api: Api, request: Request, exchange: Exchange) -> RequestMeter | None:
    """None for requests that use up nothing: those of the cluster itself."""
    if api.quota is Quota.none or _is_of_cluster(request):
        return None
    _, _, user = exchange.context.principal.partition(":")
    client_id = request.header.client_id or ""
    return RequestMeter(quotas, user, client_id, api.quota, exchange.frame_bytes)


def _is_of_cluster(request: Request) -> bool:
    """Whether a broker sends it: as a replica, or to verify a transaction."""
    body = request.body
    if isinstance(body, AddPartitionsToTxnRequest):
        return request.header.api_version >= FIRST_BATCHED_VERSION
    return getattr(body, "replica_id", -1) >= 0
