"""Nobody has a password for SCRAM: all of them are nobody, and one who is named is not found."""

import pytest

from sparklog.broker.handlers.security import scram_users
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.security.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)


def described(answered, users):
    request = DescribeUserScramCredentialsRequest(users=users and [UserName(name=one) for one in users])
    response = answered(scram_users.handle, request)
    assert (response.error_code, response.error_message) == (ErrorCode.none, None)
    return {one.user: (one.error_code.name, one.credential_infos) for one in response.results}


@pytest.mark.parametrize("users", [None, []])
def test_all_users_are_an_empty_list(answered, users):
    assert described(answered, users) == {}


def test_each_who_is_named_is_refused_for_itself(answered):
    assert described(answered, ["alice", "", "bob", "bob", ""]) == {
        "alice": ("resource_not_found", []),
        "": ("resource_not_found", []),
        "bob": ("duplicate_resource", []),
    }
