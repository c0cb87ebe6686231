"""Changes of quotas: which are legal, and what they write. The rules are those of Kafka 3.9.

Addresses are given as such: names of hosts are not looked up.
"""

import math
from collections.abc import Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final

from sparklog.core.client_quotas.quota_keys import OF_ADDRESSES, OF_CLIENTS, QuotaType
from sparklog.core.controller.commands.quota_commands import (
    AlterQuotas,
    QuotaAlteration,
    QuotaChange,
    QuotaResult,
    QuotasResult,
)
from sparklog.core.controller.state.entity_writes import EntityWrites
from sparklog.core.controller.state.image import ClusterImage
from sparklog.core.controller.state.quota_nodes import quota_path
from sparklog.core.controller.state.write_size import check_configs
from sparklog.core.controller.state.znodes import encode_configs
from sparklog.core.controller.steps import ApplyQuotas, Decision
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.quota_entity import CLIENT_ID, IP, USER, QuotaEntity
from sparklog.model.settings.setting import INT_MAX, LONG_MAX, render

ALTERATIONS_MAX: Final = 1_000
"""In one request: they are one write."""

NAME_LENGTH_MAX: Final = 1_000
"""Characters of a name. It is a step of a path in ZooKeeper, where each may take 12 bytes."""

_GREATEST: Final[Mapping[QuotaType, int]] = MappingProxyType({"INT": INT_MAX, "LONG": LONG_MAX})

_EPSILON: Final = 1e-6
"""How far a value may be from the whole number that it stands for."""


def decide_quotas(image: ClusterImage, step: ApplyQuotas) -> Decision | QuotasResult:
    """What to write, or the answer if there is nothing to write."""
    request = step.request
    if len(request.alterations) > ALTERATIONS_MAX:
        return _refuse_all(request, f"a request changes quotas of at most {ALTERATIONS_MAX} entities")
    after: dict[str, Mapping[str, str]] = {}
    results: list[QuotaResult] = []
    for alteration in request.alterations:
        try:
            path = _checked_path(alteration.entity)
            after[path] = _altered(after.get(path, image.quotas.get(path, {})), alteration)
        except KafkaError as error:
            results.append(QuotaResult(alteration.entity, error.code, error.message))
        else:
            results.append(QuotaResult(alteration.entity))
    result = QuotasResult(tuple(results))
    writes = EntityWrites(image)
    for path, configs in after.items():
        writes.put(path, configs)
    if request.validate_only or not writes.changes:
        return result
    if not writes.fits:
        return _refuse_all(request, "the quotas are too large for one write: set them in several requests")
    return Decision(step, tuple(writes.operations), tuple(writes.changes), result)


def _refuse_all(request: AlterQuotas, message: str) -> QuotasResult:
    return QuotasResult(
        tuple(QuotaResult(one.entity, ErrorCode.invalid_request, message) for one in request.alterations)
    )


def _checked_path(entity: QuotaEntity) -> str:
    """The entity's node. Raises KafkaError (INVALID_REQUEST) if there can be no quota for it."""
    if not entity.parts:
        raise _invalid("Invalid empty client quota entity")
    by_type = entity.by_type
    if len(by_type) < len(entity.parts):
        raise _invalid("A quota entity names each type once")
    for kind, name in entity.parts:
        _check_part(kind, name)
    if IP in by_type and len(by_type) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity should not be used with user/client ID entity."
        )
    return quota_path(entity)


def _check_part(kind: str, name: str | None) -> None:
    if kind not in (USER, CLIENT_ID, IP):
        raise _invalid(f"Unhandled client quota entity type: {kind}")
    if name is None:
        return
    if not name:
        raise _invalid(f"Empty {kind} not supported")
    if name in (".", "..") or len(name) > NAME_LENGTH_MAX:
        raise _invalid(f"{kind} {name[:60]!r} cannot be a node of ZooKeeper, so it has no quotas")
    if kind == IP and not _is_address(name):
        raise _invalid(f"{name} is not a valid IP or resolvable host.")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _altered(before: Mapping[str, str], alteration: QuotaAlteration) -> dict[str, str]:
    """The node's settings after the change. Raises KafkaError (INVALID_REQUEST) for an illegal quota."""
    after = dict(before)
    known = OF_ADDRESSES if IP in alteration.entity.by_type else OF_CLIENTS
    for change in alteration.changes:
        if change.value is None:
            after.pop(change.key, None)
        elif change.key not in known:
            raise _invalid(f"Invalid configuration key {change.key}")
        else:
            after[change.key] = _text_of(change, change.value, known[change.key])
    check_configs(str(alteration.entity), encode_configs(after))
    return after


def _text_of(change: QuotaChange, value: float, kind: QuotaType) -> str:
    if not math.isfinite(value) or value < 0:
        raise _invalid(f"Quota {change.key}={value} is not a finite number of at least 0")
    if kind == "DOUBLE":
        return render(value)
    whole = int(value + _EPSILON)
    if abs(whole - value) > _EPSILON:
        raise _invalid(f"Configuration {change.key} must be a {kind} value")
    return str(min(whole, _GREATEST[kind]))


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.invalid_request, message)
