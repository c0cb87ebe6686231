"""Delegation tokens, which are not offered: answered as by a Kafka without ``delegation.token.master.key``.

A token stands for a user. So one who is nobody is answered DELEGATION_TOKEN_REQUEST_error(call), and a user
DELEGATION_TOKEN_AUTH_DISABLED.
"""

from sparklog.broker.call import Call
from sparklog.core.security.requester import ANONYMOUS
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.security.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from sparklog.wire.messages.security.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from sparklog.wire.messages.security.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from sparklog.wire.messages.security.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def _error(call: Call) -> ErrorCode:
    if call.context.principal == ANONYMOUS:
        return ErrorCode.delegation_token_request_not_allowed
    return ErrorCode.delegation_token_auth_disabled


def handle_create(call: Call, request: CreateDelegationTokenRequest) -> None:
    """The answer names who asks, and the owner: who asks, unless the request names another."""
    kind, _, name = call.context.principal.partition(":")
    owner_kind, owner = kind, name
    if request.owner_principal_name:
        owner_kind, owner = request.owner_principal_type or "", request.owner_principal_name
    call.reply(
        CreateDelegationTokenResponse(
            error_code=_error(call),
            principal_type=owner_kind,
            principal_name=owner,
            token_requester_principal_type=kind,
            token_requester_principal_name=name,
        )
    )


def handle_renew(call: Call, _: RenewDelegationTokenRequest) -> None:
    call.reply(RenewDelegationTokenResponse(error_code=_error(call)))


def handle_expire(call: Call, _: ExpireDelegationTokenRequest) -> None:
    call.reply(ExpireDelegationTokenResponse(error_code=_error(call)))


def handle_describe(call: Call, _: DescribeDelegationTokenRequest) -> None:
    call.reply(DescribeDelegationTokenResponse(error_code=_error(call)))
