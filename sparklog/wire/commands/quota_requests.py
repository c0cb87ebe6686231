"""Quotas: requests as commands, results as responses."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sparklog.core.controller.commands.quota_commands import (
    AlterQuotas,
    DescribedQuotas,
    DescribeQuotas,
    Match,
    QuotaAlteration,
    QuotaChange,
    QuotaFilter,
    QuotasResult,
)
from sparklog.model.errors import ErrorCode
from sparklog.model.quota_entity import QuotaEntity
from sparklog.wire.messages.admin import alter_client_quotas as alter
from sparklog.wire.messages.admin import describe_client_quotas as describe

MATCHES: Final[Mapping[int, Match]] = MappingProxyType(
    {
        describe.QuotaMatch.exact: "exact",
        describe.QuotaMatch.default: "default",
        describe.QuotaMatch.any: "any",
    }
)


def alter_quotas(request: alter.AlterClientQuotasRequest) -> AlterQuotas:
    alterations = tuple(
        QuotaAlteration(
            QuotaEntity(tuple((part.entity_type, part.entity_name) for part in entry.entity)),
            tuple(QuotaChange(one.key, None if one.remove else one.value) for one in entry.ops),
        )
        for entry in request.entries
    )
    return AlterQuotas(alterations, request.validate_only)


def alter_quotas_response(result: QuotasResult) -> alter.AlterClientQuotasResponse:
    return alter.AlterClientQuotasResponse(
        entries=[
            alter.EntryResponseData(
                error_code=one.error,
                error_message=one.message or None,
                entity=[
                    alter.EntityData(entity_type=kind, entity_name=name) for kind, name in one.entity.parts
                ],
            )
            for one in result.results
        ]
    )


def describe_quotas(request: describe.DescribeClientQuotasRequest) -> DescribeQuotas:
    filters = tuple(
        QuotaFilter(one.entity_type, MATCHES.get(one.match_type), one.match) for one in request.components
    )
    return DescribeQuotas(filters, request.strict)


def describe_quotas_response(result: DescribedQuotas) -> describe.DescribeClientQuotasResponse:
    if result.error is not ErrorCode.none:
        return describe.DescribeClientQuotasResponse(
            error_code=result.error, error_message=result.message or None, entries=None
        )
    return describe.DescribeClientQuotasResponse(
        entries=[
            describe.EntryData(
                entity=[
                    describe.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts
                ],
                values=[describe.ValueData(key=key, value=value) for key, value in quotas.items()],
            )
            for entity, quotas in result.entries
        ]
    )
