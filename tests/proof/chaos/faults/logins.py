"""Changes of who is trusted, under load: certificates, a team's password, the rule of a guest.

They harm nobody: what clients of a team send and read goes on. Brokers come to know of them within seconds,
as long as nothing else is wrong; so no other fault strikes meanwhile.
"""

from random import Random
from typing import ClassVar

from chaos.nemesis import LOGINS, Cluster, Nemesis, Security
from chaos.teams import BLUE, RED


class _OfLogins(Nemesis):
    needs: ClassVar = frozenset({LOGINS})
    is_alone: ClassVar = True
    weight: ClassVar = 3

    _cluster: Cluster | None = None
    """Whom it struck, until it has ended."""

    def begin(self, cluster: Cluster, rng: Random) -> str:
        self._cluster = cluster
        return self._begin(cluster.security, cluster, rng)

    def end(self) -> None:
        struck, self._cluster = self._cluster, None
        if struck is not None:
            self._end(struck.security, struck)

    def _begin(self, security: Security, cluster: Cluster, rng: Random) -> str:
        raise NotImplementedError

    def _end(self, security: Security, cluster: Cluster) -> None:
        raise NotImplementedError


class RenewCertificates(_OfLogins):
    """``sparklog security renew``: who connects from then on is shown the new one, and nobody is cut off."""

    kind = "renew-certificates"

    def _begin(self, security: Security, cluster: Cluster, rng: Random) -> str:
        return security.renew()

    def _end(self, security: Security, cluster: Cluster) -> None:
        security.check_renewed(cluster)


class RotatePassword(_OfLogins):
    """A team's clients move to another password, one after the other; then the old one is deleted."""

    kind = "rotate-password"

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(15.0, 25.0)

    def _begin(self, security: Security, cluster: Cluster, rng: Random) -> str:
        return security.begin_rotation(rng.choice((RED, BLUE)))

    def _end(self, security: Security, cluster: Cluster) -> None:
        security.end_rotation()


class TakeRule(_OfLogins):
    """The guest's rule is taken away, and given back: denied within seconds, and allowed again."""

    kind = "take-rule"

    def seconds(self, cluster: Cluster, rng: Random) -> float:
        return rng.uniform(4.0, 10.0)

    def _begin(self, security: Security, cluster: Cluster, rng: Random) -> str:
        return security.call_in_loan(cluster)

    def _end(self, security: Security, cluster: Cluster) -> None:
        security.lend(cluster)


def all_of_logins() -> list[Nemesis]:
    """Every nemesis of this file."""
    return [RenewCertificates(), RotatePassword(), TakeRule()]
