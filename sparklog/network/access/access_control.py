"""The rights of requesters, for servers: judged by an authorizer, and denials reported in the log."""

import logging
from functools import partial
from typing import Final

from sparklog.core.security.access import Access
from sparklog.core.security.acl import AclOperation, ResourceType
from sparklog.core.security.audit import Audit
from sparklog.core.security.authorizer import Authorizer, authorizer_of
from sparklog.core.security.denials import Denials
from sparklog.core.security.requester import ANONYMOUS, Requester
from sparklog.core.security.rules import CLUSTER_NAME
from sparklog.model.errors import UnsafeStartError
from sparklog.model.ports import Guard
from sparklog.model.settings.config import BrokerConfig
from sparklog.model.time import Clock

logger: Final = logging.getLogger(__name__)

OWN_HOST: Final = "127.0.0.1"
"""Where a server's own requests come from, as far as it can tell before it has sent any."""


def access_control_of(
    config: BrokerConfig, clock: Clock, guard: Guard, audit: Audit | None = None
) -> "AccessControl | None":
    """None if the settings ask for no authorizer. It has no rules yet. ``audit``: gets each denial."""
    authorizer = authorizer_of(config)
    return None if authorizer is None else AccessControl(authorizer, clock, guard, audit)


class AccessControl:
    """For any thread."""

    def __init__(
        self, authorizer: Authorizer, clock: Clock, guard: Guard, audit: Audit | None = None
    ) -> None:
        self.authorizer = authorizer
        self._audit = audit
        self._clock = clock
        self._guard = guard
        self._denials = Denials()

    def of(self, requester: Requester, api: str) -> Access:
        """What ``requester`` may do by a request of ``api``."""
        return Access(self.authorizer, requester, partial(self._on_denial, api))

    def _on_denial(
        self, api: str, requester: Requester, operation: AclOperation, resource: ResourceType, name: str
    ) -> None:
        if self._audit is not None:
            self._audit.denied(requester, api, operation, resource, name)
        with self._guard:
            now_ms = self._clock.monotonic_ms()
            line = self._denials.on_denial(requester, operation, resource, name, now_ms)
        if line is not None:
            logger.warning("%s", line)

    def check_own_right(self, principal: str, what: str) -> None:
        """Raises ConfigError if ``principal``, which is this server's own among brokers, may do nothing
        there.
        """
        if self.authorizer.allows(
            Requester(principal, OWN_HOST), AclOperation.cluster_action, ResourceType.cluster, CLUSTER_NAME
        ):
            return
        if principal == ANONYMOUS:
            raise UnsafeStartError(
                f"{what} is {ANONYMOUS} to other brokers, and may do nothing there: give the brokers' "
                "listener a login, such as security.inter.broker.protocol=SSL with "
                "ssl.client.auth=required, and name its principal in super.users"
            )
        raise UnsafeStartError(
            f"{what} is {principal} to other brokers, and lacks CLUSTER_ACTION there: set "
            f"super.users={';'.join(sorted({*self.authorizer.super_users, principal}))}"
        )
