"""AlterClientQuotas: the controller stores quotas. Some kinds have no effect yet: each one that is set is
announced in this broker's log.
"""

import logging
from typing import Final

from sparklog.broker.call import Call
from sparklog.broker.forwarding import response_to
from sparklog.core.client_quotas.quota_keys import CONNECTION_CREATION_RATE
from sparklog.model.errors import ErrorCode
from sparklog.wire.commands.quota_requests import alter_quotas
from sparklog.wire.messages.admin.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)

logger: Final = logging.getLogger(__name__)

WITHOUT_EFFECT: Final = frozenset({CONNECTION_CREATION_RATE})


def handle(call: Call, request: AlterClientQuotasRequest) -> None:
    response: AlterClientQuotasResponse = response_to(call, request, call.frame)
    if not request.validate_only:
        _warn(request, response)
    call.reply(response)


def _warn(request: AlterClientQuotasRequest, response: AlterClientQuotasResponse) -> None:
    """One warning for each such quota that is set now."""
    for alteration, answer in zip(alter_quotas(request).alterations, response.entries, strict=True):
        if answer.error_code is not ErrorCode.none:
            continue
        for change in alteration.changes:
            if change.value is not None and change.key in WITHOUT_EFFECT:
                logger.warning(
                    "the quota %s=%s of %s is stored and has no effect: its kind is not enforced yet",
                    change.key,
                    change.value,
                    alteration.entity,
                )
