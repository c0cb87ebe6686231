"""Delegation tokens: DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on Kafka's listeners without authentication.

A token stands for an authenticated user, and no listener authenticates yet.
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

_NOT_ALLOWED = ErrorCode.delegation_token_request_not_allowed


def handle_create(call: Call, request: CreateDelegationTokenRequest) -> None:
    """The answer names who asks, and the owner: who asks, unless the request names another."""
    kind, _, name = ANONYMOUS.partition(":")
    owner_kind, owner = kind, name
    if request.owner_principal_name:
        owner_kind, owner = request.owner_principal_type or "", request.owner_principal_name
    call.reply(
        CreateDelegationTokenResponse(
            error_code=_NOT_ALLOWED,
            principal_type=owner_kind,
            principal_name=owner,
            token_requester_principal_type=kind,
            token_requester_principal_name=name,
        )
    )


def handle_renew(call: Call, _: RenewDelegationTokenRequest) -> None:
    call.reply(RenewDelegationTokenResponse(error_code=_NOT_ALLOWED))


def handle_expire(call: Call, _: ExpireDelegationTokenRequest) -> None:
    call.reply(ExpireDelegationTokenResponse(error_code=_NOT_ALLOWED))


def handle_describe(call: Call, _: DescribeDelegationTokenRequest) -> None:
    call.reply(DescribeDelegationTokenResponse(error_code=_NOT_ALLOWED))
