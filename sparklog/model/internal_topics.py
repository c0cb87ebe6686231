"""Topics of the cluster's own state, with Kafka's names: coordinators write them, clients only read them."""

from typing import Final

GROUP_OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({GROUP_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC})

AGREED_BYTES_MAX: Final = 512 << 10
"""Bytes of a value that tasks agree upon, as ``__transaction_state`` keeps it."""
