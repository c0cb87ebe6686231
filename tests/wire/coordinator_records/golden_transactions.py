"""Records of ``__transaction_state`` in both versions, written down from Kafka's schemas by hand."""

import uuid

from sparklog.core.transaction_coordinator.records import TransactionKey, TransactionTopic, TransactionValue
from sparklog.core.transaction_coordinator.states import TransactionState
from sparklog.model.ids import NO_TOPIC_ID

KEY = TransactionKey("txn")
KEY_BYTES = b"\x00\x00\x00\x03txn"

A_ID = uuid.UUID(bytes=bytes(range(16)))
B_ID = uuid.UUID(bytes=bytes(range(16, 32)))

_FIXED = (
    b"\x00\x00\x00\x00\x00\x00\x10\x00"  # producer id 4096
    b"\x00\x07"  # producer epoch
    b"\x00\x00\xea\x60"  # time-out: 60,000 ms
)
_TIMES = b"\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00"  # updated, begun

ONGOING_0_BYTES = (
    b"\x00\x00"
    + _FIXED
    + b"\x01"  # Ongoing
    + b"\x00\x00\x00\x02"
    + b"\x00\x01a"
    + b"\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x03"
    + b"\x00\x01b"
    + b"\x00\x00\x00\x01\x00\x00\x00\x05"
    + _TIMES
)
_TOPICS_1 = (
    b"\x03"  # two, compact
    b"\x02a" + b"\x03\x00\x00\x00\x00\x00\x00\x00\x03" + b"\x00"
    b"\x02b" + b"\x02\x00\x00\x00\x05" + b"\x00"
)
ONGOING_1_BYTES = b"\x00\x01" + _FIXED + b"\x01" + _TOPICS_1 + _TIMES + b"\x00"
ONGOING = TransactionValue(
    4096,
    7,
    60_000,
    TransactionState.ONGOING,
    (TransactionTopic("a", NO_TOPIC_ID, (0, 3)), TransactionTopic("b", NO_TOPIC_ID, (5,))),
    512,
    256,
)

OURS_BYTES = (
    ONGOING_1_BYTES[:-1]
    + b"\x03"  # three tags
    + b"\x00\x08\x00\x00\x00\x00\x00\x00\x0f\xff"  # 0: the previous producer id
    + b"\x88\x27\x21\x03"  # 5000, 33 bytes: two topic ids
    + bytes(range(32))
    + b"\x89\x27\x02\x00\x06"  # 5001: the last producer epoch
)
OURS = TransactionValue(
    4096,
    7,
    60_000,
    TransactionState.ONGOING,
    (TransactionTopic("a", A_ID, (0, 3)), TransactionTopic("b", B_ID, (5,))),
    512,
    256,
    4095,
    6,
)

EMPTY_BYTES = {
    0: b"\x00\x00" + _FIXED + b"\x00" + b"\xff\xff\xff\xff" + _TIMES[:8] + b"\xff" * 8,
    1: b"\x00\x01" + _FIXED + b"\x00" + b"\x00" + _TIMES[:8] + b"\xff" * 8 + b"\x00",
}
EMPTY = TransactionValue(4096, 7, 60_000, TransactionState.EMPTY, (), 512)

COMPLETE_BYTES = b"\x00\x01" + _FIXED + b"\x04" + b"\x01" + _TIMES + b"\x00"
COMPLETE = TransactionValue(4096, 7, 60_000, TransactionState.COMPLETE_COMMIT, (), 512, 256)
