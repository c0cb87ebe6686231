"""DescribeAcls, CreateAcls and DeleteAcls: forwarded to the controller, if there is an authorizer.

Without one they are SECURITY_DISABLED, as of a Kafka without one.

Tools and MirrorMaker 2 take that for an open cluster. A request that is not served would look like a broker
that is too old.
"""

from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.forwarding import forward
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.security.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from sparklog.wire.messages.security.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from sparklog.wire.messages.security.describe_acls import DescribeAclsRequest, DescribeAclsResponse

NO_AUTHORIZER: Final = "this cluster has no authorizer: everybody may do everything, and there are no rules"


def handle_describe(call: Call, request: DescribeAclsRequest) -> None:
    if call.access is not None:
        forward(call, request)
        return
    error = ErrorCode.security_disabled
    call.reply(DescribeAclsResponse(error_code=error, error_message=NO_AUTHORIZER))


def handle_create(call: Call, request: CreateAclsRequest) -> None:
    if call.access is not None:
        forward(call, request)
        return
    refused = AclCreationResult(error_code=ErrorCode.security_disabled, error_message=NO_AUTHORIZER)
    call.reply(CreateAclsResponse(results=[refused for _ in request.creations]))


def handle_delete(call: Call, request: DeleteAclsRequest) -> None:
    if call.access is not None:
        forward(call, request)
        return
    refused = DeleteAclsFilterResult(error_code=ErrorCode.security_disabled, error_message=NO_AUTHORIZER)
    call.reply(DeleteAclsResponse(filter_results=[refused for _ in request.filters]))
