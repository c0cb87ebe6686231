"""Metrics of clients' quotas, of the entities that were active last (docs/metrics.md)."""

from collections.abc import Iterator

from sparklog.broker.client_quotas import ClientQuotas
from sparklog.model.metric import Metric


def quota_metrics(quotas: ClientQuotas) -> Iterator[Metric]:
    """Labels are empty where a quota is shared by all users, or by all client ids."""
    used = [(key, one) for key, entities in quotas.used().items() for one in entities]
    for name, doc, figure in (
        ("sparklog_broker_quota_used_rate", "What is used of a quota, a second.", "rate"),
        (
            "sparklog_broker_quota_delay_milliseconds",
            "How long a client that came now would wait.",
            "delay_ms",
        ),
    ):
        for key, one in used:
            labels = (("quota", key), ("user", one.shared.user), ("client_id", one.shared.client_id))
            yield Metric(name, "gauge", doc, getattr(one, figure), labels)
