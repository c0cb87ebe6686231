"""ApiVersions: which APIs and versions this broker serves."""

from typing import Final

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from sparklog.wire.versions import API_VERSIONS, OWN_VERSIONS

OWN_CLIENTS: Final = "sparklog"
"""The software name of clients that know sparklog's own APIs; other clients do not see them."""


def response(error: ErrorCode = ErrorCode.none, *, tells_own: bool = False) -> ApiVersionsResponse:
    """The whole table; an unsupported version gets it too, in the layout of version 0 (KIP-511)."""
    own = OWN_VERSIONS.items() if tells_own else ()
    return ApiVersionsResponse(
        error_code=error,
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
            for key, versions in API_VERSIONS.items()
        ],
        own_apis=[number for key, versions in own for number in (key, versions.min, versions.max)],
    )


def handle(call: Call, request: ApiVersionsRequest) -> None:
    call.reply(response(tells_own=request.client_software_name == OWN_CLIENTS))
