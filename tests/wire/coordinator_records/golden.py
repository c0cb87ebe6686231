"""Records of ``__consumer_offsets`` in every version, written down from Kafka's schemas by hand."""

from sparklog.core.group.records import GroupKey, GroupValue, MemberValue, OffsetKey, OffsetValue
from sparklog.model.ids import TopicPartition

OFFSET_KEY = OffsetKey("grp", TopicPartition("top", 7))
OFFSET_KEY_BYTES = (
    b"\x00\x01"  # version 1
    b"\x00\x03grp"
    b"\x00\x03top"
    b"\x00\x00\x00\x07"
)
GROUP_KEY = GroupKey("grp")
GROUP_KEY_BYTES = b"\x00\x02\x00\x03grp"

OFFSET_BYTES = {
    0: b"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x2a\x00\x02me\x00\x00\x00\x00\x00\x00\x01\x00",
    1: (
        b"\x00\x01"
        b"\x00\x00\x00\x00\x00\x00\x00\x2a"
        b"\x00\x02me"
        b"\x00\x00\x00\x00\x00\x00\x01\x00"
        b"\x00\x00\x00\x00\x00\x00\x02\x00"  # expires
    ),
    2: b"\x00\x02\x00\x00\x00\x00\x00\x00\x00\x2a\x00\x02me\x00\x00\x00\x00\x00\x00\x01\x00",
    3: (
        b"\x00\x03"
        b"\x00\x00\x00\x00\x00\x00\x00\x2a"
        b"\x00\x00\x00\x05"  # leader epoch
        b"\x00\x02me"
        b"\x00\x00\x00\x00\x00\x00\x01\x00"
    ),
    4: (
        b"\x00\x04"
        b"\x00\x00\x00\x00\x00\x00\x00\x2a"
        b"\x00\x00\x00\x05"
        b"\x03me"  # compact: length and 1
        b"\x00\x00\x00\x00\x00\x00\x01\x00"
        b"\x01\x09\x02hi"  # one tag: number 9, two bytes
    ),
}
OFFSETS = {
    0: OffsetValue(42, -1, "me", 256),
    1: OffsetValue(42, -1, "me", 256, 512),
    2: OffsetValue(42, -1, "me", 256),
    3: OffsetValue(42, 5, "me", 256),
    4: OffsetValue(42, 5, "me", 256),
}

GROUP_BYTES = {
    0: (
        b"\x00\x00"
        b"\x00\x08consumer"
        b"\x00\x00\x00\x03"  # generation
        b"\x00\x05range"
        b"\x00\x02m1"  # leader
        b"\x00\x00\x00\x01"  # members
        b"\x00\x02m1"
        b"\x00\x02ci"  # client id
        b"\x00\x05/host"
        b"\x00\x00\x27\x10"  # session time-out
        b"\x00\x00\x00\x02\x01\x02"  # subscription
        b"\x00\x00\x00\x01\x03"  # assignment
    ),
    1: (
        b"\x00\x01"
        b"\x00\x08consumer"
        b"\x00\x00\x00\x03"
        b"\x00\x05range"
        b"\x00\x02m1"
        b"\x00\x00\x00\x01"
        b"\x00\x02m1"
        b"\x00\x02ci"
        b"\x00\x05/host"
        b"\x00\x00\xea\x60"  # rebalance time-out
        b"\x00\x00\x27\x10"
        b"\x00\x00\x00\x02\x01\x02"
        b"\x00\x00\x00\x01\x03"
    ),
    2: (
        b"\x00\x02"
        b"\x00\x08consumer"
        b"\x00\x00\x00\x03"
        b"\x00\x05range"
        b"\x00\x02m1"
        b"\x00\x00\x00\x00\x00\x00\x03\x00"  # time of the state
        b"\x00\x00\x00\x01"
        b"\x00\x02m1"
        b"\x00\x02ci"
        b"\x00\x05/host"
        b"\x00\x00\xea\x60"
        b"\x00\x00\x27\x10"
        b"\x00\x00\x00\x02\x01\x02"
        b"\x00\x00\x00\x01\x03"
    ),
    3: (
        b"\x00\x03"
        b"\x00\x08consumer"
        b"\x00\x00\x00\x03"
        b"\x00\x05range"
        b"\x00\x02m1"
        b"\x00\x00\x00\x00\x00\x00\x03\x00"
        b"\x00\x00\x00\x01"
        b"\x00\x02m1"
        b"\x00\x04inst"  # instance id
        b"\x00\x02ci"
        b"\x00\x05/host"
        b"\x00\x00\xea\x60"
        b"\x00\x00\x27\x10"
        b"\x00\x00\x00\x02\x01\x02"
        b"\x00\x00\x00\x01\x03"
    ),
    4: (
        b"\x00\x04"
        b"\x09consumer"
        b"\x00\x00\x00\x03"
        b"\x06range"
        b"\x03m1"
        b"\x00\x00\x00\x00\x00\x00\x03\x00"
        b"\x02"  # members and 1
        b"\x03m1"
        b"\x05inst"
        b"\x03ci"
        b"\x06/host"
        b"\x00\x00\xea\x60"
        b"\x00\x00\x27\x10"
        b"\x03\x01\x02"
        b"\x02\x03"
        b"\x00"  # no tags of the member
        b"\x00"  # nor of the group
    ),
}


def member(instance_id: str | None, rebalance_timeout_ms: int = 60_000) -> MemberValue:
    return MemberValue("m1", instance_id, "ci", "/host", rebalance_timeout_ms, 10_000, b"\x01\x02", b"\x03")


GROUPS = {
    0: GroupValue("consumer", 3, "range", "m1", -1, (member(None, 10_000),)),
    1: GroupValue("consumer", 3, "range", "m1", -1, (member(None),)),
    2: GroupValue("consumer", 3, "range", "m1", 768, (member(None),)),
    3: GroupValue("consumer", 3, "range", "m1", 768, (member("inst"),)),
    4: GroupValue("consumer", 3, "range", "m1", 768, (member("inst"),)),
}
