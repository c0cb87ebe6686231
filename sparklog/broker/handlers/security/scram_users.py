"""DescribeUserScramCredentials: nobody has a password here, so that all users are an empty list.

A user who is named is RESOURCE_NOT_FOUND, and DUPLICATE_RESOURCE if it is named twice.
"""

from collections import Counter

from sparklog.broker.call import Call
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.security.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def handle(call: Call, request: DescribeUserScramCredentialsRequest) -> None:
    named = Counter(user.name for user in request.users or ())
    results = [_described(name, times) for name, times in named.items()]
    call.reply(DescribeUserScramCredentialsResponse(results=results))


def _described(name: str, times: int) -> DescribeUserScramCredentialsResult:
    error, why = ErrorCode.resource_not_found, f"there are no SCRAM credentials of user {name!r}"
    if not name:
        why = "a user's name is not empty"
    elif times > 1:
        error, why = ErrorCode.duplicate_resource, f"user {name!r} is named {times} times: name it once"
    return DescribeUserScramCredentialsResult(user=name, error_code=error, error_message=why)
