"""ApiVersions: which APIs and versions this broker serves."""

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.discovery.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from sparklog.wire.versions import API_VERSIONS


def response(error: ErrorCode = ErrorCode.none) -> ApiVersionsResponse:
    """The whole table; an unsupported version gets it too, in the layout of version 0 (KIP-511)."""
    return ApiVersionsResponse(
        error_code=error,
        api_keys=[
            ApiVersion(api_key=key, min_version=versions.min, max_version=versions.max)
            for key, versions in API_VERSIONS.items()
        ],
    )


def handle(call: Call, request: ApiVersionsRequest) -> None:
    call.reply(response())
