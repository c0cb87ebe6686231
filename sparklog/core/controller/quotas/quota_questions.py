"""Which quotas a DescribeClientQuotas gets: those of the entities that all of its filters take."""

from collections.abc import Mapping

from sparklog.core.client_quotas.quota_keys import OF_ADDRESSES, OF_CLIENTS
from sparklog.core.controller.commands.quota_commands import DescribedQuotas, DescribeQuotas, QuotaFilter
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.quota_nodes import entity_of
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.quota_entity import CLIENT_ID, IP, USER, QuotaEntity


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.invalid_request, message)


def describe_quotas(image: ClusterImage, request: DescribeQuotas) -> DescribedQuotas:
    """The quotas of all entities that the filters take, in the order of their nodes."""
    try:
        filters = _checked_filters(request.filters)
    except KafkaError as error:
        return DescribedQuotas(error=error.code, message=error.message)
    entries = []
    for path in sorted(image.quotas):
        entity, quotas = entity_of(path), _quotas_in(image.quotas[path])
        if entity is not None and quotas and _takes(filters, entity, is_strict=request.is_strict):
            entries.append((entity, quotas))
    return DescribedQuotas(tuple(entries))


def _checked_filters(filters: tuple[QuotaFilter, ...]) -> dict[str, QuotaFilter]:
    by_type: dict[str, QuotaFilter] = {}
    for one in filters:
        if one.kind == "":
            raise _invalid("Unexpected empty filter component entity type")
        if one.kind not in (USER, CLIENT_ID, IP):
            message = f"Custom entity type '{one.kind}' not supported"
            raise KafkaError(ErrorCode.unsupported_version, message)
        if one.kind in by_type:
            raise _invalid(f"Duplicate {one.kind} filter component entity type")
        if one.match is None:
            raise _invalid(f"Unexpected match type of {one.kind}: use 0 (exact), 1 (default) or 2 (any)")
        by_type[one.kind] = one
    if IP in by_type and len(by_type) > 1:
        raise _invalid(
            "Invalid entity filter component combination, IP filter component should not be used with user "
            "or clientId filter component."
        )
    return by_type


def _takes(filters: Mapping[str, QuotaFilter], entity: QuotaEntity, *, is_strict: bool) -> bool:
    by_type = entity.by_type
    if is_strict and by_type.keys() - filters.keys():
        return False
    return all(kind in by_type and _matches(one, by_type[kind]) for kind, one in filters.items())


def _matches(wanted: QuotaFilter, name: str | None) -> bool:
    if wanted.match == "any":
        return True
    return name == (wanted.name if wanted.match == "exact" else None)


def _quotas_in(configs: Mapping[str, str]) -> dict[str, float]:
    """The quotas that a node holds; users' nodes of Kafka may hold credentials as well."""
    quotas = {}
    for key, text in configs.items():
        if key in OF_CLIENTS or key in OF_ADDRESSES:
            try:
                quotas[key] = float(text)
            except ValueError:
                continue  # written by another tool, and no quota
    return quotas
