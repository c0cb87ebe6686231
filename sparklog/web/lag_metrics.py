"""Lag by group and topic as metrics, of the page's last look at groups. PURE.

A coordinator does not know where others' logs end, and a leader does not know who reads it. The page looks at
both every half minute. The pairs with the largest lags have series of their own; the others share one.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from sparklog.client.group.lag_look import LagLook
from sparklog.model.metric import Metric, gauge

SERIES_MAX: Final = 1_000
OTHERS: Final = ("", "")
LAG: Final = "sparklog_group_lag_records"
LAG_DOC: Final = "Offsets between what a group has committed and the ends of a topic's partitions."


def lag_metrics(look: LagLook | None) -> Iterator[Metric]:
    """None before the first look, as there is nothing to say then."""
    if look is None:
        return
    lags: Counter[tuple[str, str]] = Counter()
    for name, group in look.groups.items():
        for one in group.partitions:
            lags[name, one.topic_partition.topic] += one.lag
    largest = lags.most_common(SERIES_MAX)
    others = lags.total() - sum(lag for _, lag in largest)
    for (group_id, topic), lag in [*largest, (OTHERS, others)]:
        yield gauge(LAG, LAG_DOC, lag, group=group_id, topic=topic)
