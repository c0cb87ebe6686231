"""Changes of topics under a quota: each partition that a client creates or deletes costs a token (KIP-599).

A client that understands THROTTLING_QUOTA_EXCEEDED is refused while it is in debt; the change of an older one
is made, and the answer says how long to wait. Each change may cost more than is left. Internal topics cost
nothing, because brokers create them.
"""

from dataclasses import dataclass, field

from sparklog.core.client_quotas.quota_table import QuotaTable, Shared
from sparklog.core.client_quotas.sampled_rate import Windows
from sparklog.core.client_quotas.token_bucket import TokenBucket
from sparklog.core.client_quotas.usage import Recent
from sparklog.model.errors import ErrorCode, KafkaError
from sparklog.model.internal_topics import INTERNAL_TOPICS
from sparklog.model.time import MonotonicMs


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose tokens a command costs. ``user``: the principal's name without its type."""

    user: str
    client_id: str
    is_strict: bool
    """Whether the client understands a refusal."""


@dataclass(slots=True)
class Mutations:
    """What is left to each entity with a quota, in one term of office."""

    windows: Windows = field(default_factory=Windows)
    recent: Recent[TokenBucket] = field(init=False)

    def __post_init__(self) -> None:
        self.recent = Recent(lambda: TokenBucket(self.windows))

    def bucket(self, shared: Shared, now_ms: MonotonicMs) -> TokenBucket:
        return self.recent.of(shared, now_ms)


@dataclass(slots=True)
class Bill:
    """What one command costs."""

    mutations: Mutations
    table: QuotaTable
    payer: Payer
    now_ms: MonotonicMs
    delay_ms: int = 0
    """How long the client must wait."""

    def charge(self, topic: str, partitions: int) -> None:
        """Raises KafkaError (THROTTLING_QUOTA_EXCEEDED) if the change of ``topic`` must not be made."""
        limit = self.table.find(self.payer.user, self.payer.client_id)
        if limit is None or topic in INTERNAL_TOPICS:
            return
        rate, now_ms = limit.bound, self.now_ms
        bucket = self.mutations.bucket(limit.shared, now_ms)
        if self.payer.is_strict:
            delay_ms = bucket.delay_ms(rate, now_ms)
            if delay_ms:
                self.delay_ms = max(self.delay_ms, delay_ms)
                message = "The throttling quota has been exceeded."
                raise KafkaError(ErrorCode.throttling_quota_exceeded, message)
            bucket.spend(partitions, rate, now_ms)
        else:
            bucket.spend(partitions, rate, now_ms)
            self.delay_ms = max(self.delay_ms, bucket.delay_ms(rate, now_ms))
