"""Claims of delegation tokens, which are known by their HMACs: there are none."""

from sparklog.wire.messages.security.expire_delegation_token import ExpireDelegationTokenRequest
from sparklog.wire.messages.security.renew_delegation_token import RenewDelegationTokenRequest


class NoToken:
    """There is no owner, as no listener authenticates anybody."""

    def __init__(self, cluster, wire):
        self.wire = wire

    def claimed(self, claim):
        return {"a token that was never given": b"secret"}[claim]

    def renew(self, claim):
        request = RenewDelegationTokenRequest(hmac=self.claimed(claim), renew_period_ms=1_000)
        return self.wire.call(1, request).error_code

    def expire(self, claim):
        request = ExpireDelegationTokenRequest(hmac=self.claimed(claim), expiry_time_period_ms=-1)
        return self.wire.call(1, request).error_code

    def goes_on(self):
        """Nobody has to."""
