"""Delegation tokens are not given: strangers may not ask for them, and users are told that there are none."""

import pytest

from sparklog.broker.handlers.security import delegation_tokens
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.security.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from sparklog.wire.messages.security.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from sparklog.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from sparklog.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest

NOT_ALLOWED = ErrorCode.delegation_token_request_not_allowed
RENEWERS = [CreatableRenewers(principal_type="User", principal_name="bob")]


def created(answered, version, **owner):
    request = CreateDelegationTokenRequest(renewers=RENEWERS, max_lifetime_ms=-1, **owner)
    response = answered(delegation_tokens.handle_create, request, version)
    assert response.error_code is NOT_ALLOWED
    assert (response.token_id, bytes(response.hmac), response.max_timestamp_ms) == ("", b"", -1)
    return response


@pytest.mark.parametrize("version", range(4))
def test_no_token_is_created_for_who_asks(answered, version):
    response = created(answered, version)
    assert (response.principal_type, response.principal_name) == ("User", "ANONYMOUS")
    requester = (response.token_requester_principal_type, response.token_requester_principal_name)
    assert requester == (("User", "ANONYMOUS") if version >= 3 else ("", ""))


def test_no_token_is_created_for_another_owner(answered):
    response = created(answered, 3, owner_principal_type="User", owner_principal_name="alice")
    assert (response.principal_type, response.principal_name) == ("User", "alice")
    assert response.token_requester_principal_name == "ANONYMOUS"


def test_a_user_is_told_that_there_are_none(answered):
    request = CreateDelegationTokenRequest(renewers=RENEWERS, max_lifetime_ms=-1)
    response = answered(delegation_tokens.handle_create, request, 3, principal="User:alice")
    assert response.error_code is ErrorCode.delegation_token_auth_disabled
    assert (response.principal_type, response.principal_name) == ("User", "alice")
    assert response.token_requester_principal_name == "alice"


@pytest.mark.parametrize("version", range(3))
def test_none_is_renewed_and_none_ends_early(answered, version):
    renewal = RenewDelegationTokenRequest(hmac=b"secret", renew_period_ms=1_000)
    expiry = ExpireDelegationTokenRequest(hmac=b"secret", expiry_time_period_ms=-1)
    for handler, request in (
        (delegation_tokens.handle_renew, renewal),
        (delegation_tokens.handle_expire, expiry),
    ):
        response = answered(handler, request, version)
        assert (response.error_code, response.expiry_timestamp_ms) == (NOT_ALLOWED, -1)


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("owners", [None, [], ["alice"]])
def test_none_is_described(answered, version, owners):
    named = owners and [DescribeDelegationTokenOwner(principal_type="User", principal_name=n) for n in owners]
    request = DescribeDelegationTokenRequest(owners=named)
    response = answered(delegation_tokens.handle_describe, request, version)
    assert (response.error_code, response.tokens) == (NOT_ALLOWED, [])
