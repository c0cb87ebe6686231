"""ApiVersions: which APIs and versions this broker serves."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sparklog.broker.call import Call
from sparklog.core.apis.api import Api, ListenerKind
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from sparklog.wire.versions import API_VERSIONS, OWN_VERSIONS

OWN_CLIENTS: Final = "sparklog"
"""The software name of clients that know sparklog's own APIs; other clients do not see them."""

NONE: Final[Mapping[int, Api]] = MappingProxyType({})


def response(error: ErrorCode = ErrorCode.none, own: Mapping[int, Api] = NONE) -> ApiVersionsResponse:
    """The whole table; an unsupported version gets it too, in the layout of version 0 (KIP-511). ``own``:
    what it says of sparklog's own APIs.
    """
    return ApiVersionsResponse(
        error_code=error,
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
            for key, versions in API_VERSIONS.items()
        ],
        own_apis=[number for key, versions in own.items() for number in (key, versions.min, versions.max)],
    )


def handle(call: Call, request: ApiVersionsRequest) -> None:
    if request.client_software_name != OWN_CLIENTS:
        call.reply(response())
        return
    is_brokers = call.context.listener == call.broker.brokers_listener
    kind = ListenerKind.brokers if is_brokers else ListenerKind.clients
    call.reply(response(own={key: api for key, api in OWN_VERSIONS.items() if kind in api.listeners}))
