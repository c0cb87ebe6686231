"""Rules of a cluster without an authorizer: each request is told so, and each rule of it for itself."""

import pytest

from sparklog.broker.handlers.security import acls
from sparklog.model.errors import ErrorCode
from sparklog.wire.messages.security.create_acls import AclCreation, CreateAclsRequest
from sparklog.wire.messages.security.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from sparklog.wire.messages.security.describe_acls import DescribeAclsRequest

DISABLED = ErrorCode.security_disabled
VERSIONS = range(4)
FILTER = {"resource_type_filter": 1, "operation": 1, "permission_type": 1}
RULE = AclCreation(
    resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3
)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_description_is_refused_as_a_whole(answered, version):
    response = answered(acls.handle_describe, DescribeAclsRequest(**FILTER), version)
    assert (response.error_code, response.resources) == (DISABLED, [])
    assert "no authorizer" in response.error_message


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_each_creation_is_refused_for_itself(answered, version, count):
    response = answered(acls.handle_create, CreateAclsRequest(creations=[RULE] * count), version)
    assert [one.error_code for one in response.results] == [DISABLED] * count
    assert all("no authorizer" in one.error_message for one in response.results)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_each_filter_of_a_deletion_is_refused_for_itself(answered, version, count):
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**FILTER) for _ in range(count)])
    response = answered(acls.handle_delete, request, version)
    assert [(one.error_code, one.matching_acls) for one in response.filter_results] == [
        (DISABLED, [])
    ] * count
