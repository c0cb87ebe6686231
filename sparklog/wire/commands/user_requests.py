"""Users' passwords for SCRAM: requests as commands, results as responses."""

from sparklog.core.controller.commands.user_commands import (
    AlterUsers,
    CredentialDeletion,
    CredentialUpsertion,
    DescribedUsers,
    DescribeUsers,
    UsersResult,
)
from sparklog.wire.messages.security import alter_user_scram_credentials as alter
from sparklog.wire.messages.security import describe_user_scram_credentials as describe


def alter_users(request: alter.AlterUserScramCredentialsRequest) -> AlterUsers:
    return AlterUsers(
        tuple(CredentialDeletion(one.name, one.mechanism) for one in request.deletions),
        tuple(
            CredentialUpsertion(
                one.name, one.mechanism, one.iterations, bytes(one.salt), bytes(one.salted_password)
            )
            for one in request.upsertions
        ),
    )


def alter_users_response(result: UsersResult) -> alter.AlterUserScramCredentialsResponse:
    return alter.AlterUserScramCredentialsResponse(
        results=[
            alter.AlterUserScramCredentialsResult(
                user=one.user, error_code=one.error, error_message=one.message or None
            )
            for one in result.results
        ]
    )


def describe_users(request: describe.DescribeUserScramCredentialsRequest) -> DescribeUsers:
    return DescribeUsers(tuple(user.name for user in request.users or ()))


def describe_users_response(result: DescribedUsers) -> describe.DescribeUserScramCredentialsResponse:
    return describe.DescribeUserScramCredentialsResponse(
        error_code=result.error,
        error_message=result.message or None,
        results=[
            describe.DescribeUserScramCredentialsResult(
                user=one.user,
                error_code=one.error,
                error_message=one.message or None,
                credential_infos=[
                    describe.CredentialInfo(mechanism=mechanism, iterations=iterations)
                    for mechanism, iterations in one.credentials
                ],
            )
            for one in result.users
        ],
    )
