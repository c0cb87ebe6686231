"""Which partition of an internal topic a key belongs to: Java's hash of the key, modulo the partitions.

Every Kafka broker and tool computes the same, so that a group's records are found where Kafka would put them.
"""

import struct
from typing import Final

_UNIT: Final = struct.Struct(">H")
_MODULUS: Final = 1 << 32
_INT_MIN_AS_UNSIGNED: Final = 1 << 31


def partition_of(key: str, partitions: int) -> int:
    """The number of the partition, of ``partitions``, that holds the records of ``key``."""
    return _absolute(_java_hash(key)) % partitions


def _java_hash(text: str) -> int:
    """``String.hashCode`` of the text's UTF-16 units, as an unsigned number of 32 bits."""
    number = 0
    for (unit,) in _UNIT.iter_unpack(text.encode("utf-16-be", "surrogatepass")):
        number = (31 * number + unit) % _MODULUS
    return number


def _absolute(number: int) -> int:
    """The absolute value of a Java int, with 0 for the least one, which has none (Kafka's ``Utils.abs``)."""
    if number == _INT_MIN_AS_UNSIGNED:
        return 0
    return _MODULUS - number if number > _INT_MIN_AS_UNSIGNED else number
