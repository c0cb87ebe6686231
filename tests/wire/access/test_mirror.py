"""Refusals of whole requests: they name what the request has named."""

from sparklog.model.errors import ErrorCode
from sparklog.wire.access.mirror import refused
from sparklog.wire.messages.admin.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData


def test_a_refused_change_of_quotas_names_the_entity_of_each_entry():
    entities = [
        [EntityData(entity_type="user", entity_name="alice")],
        [
            EntityData(entity_type="user", entity_name=None),
            EntityData(entity_type="client-id", entity_name="c"),
        ],
    ]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=[]) for entity in entities])

    response = refused(request, ErrorCode.cluster_authorization_failed)

    assert [entry.entity for entry in response.entries] == entities
    assert {entry.error_code for entry in response.entries} == {ErrorCode.cluster_authorization_failed}
