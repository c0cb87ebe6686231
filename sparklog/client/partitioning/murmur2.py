"""The hash by which Kafka's Java clients spread keys over partitions, for one key and for columns of them.

MurmurHash2 with Kafka's seed, made positive by clearing the sign bit. Other clients must agree with it to the
bit: a key's records are in one partition only if all clients compute the same number. (librdkafka's
default is another hash.)

The column form works through all keys at once, four bytes of every key per step, with the longest keys first
so that each step is a prefix of the arrays. The few keys that are far longer than all others are hashed one
by one, because a step over a handful of keys costs as much as one over thousands.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

UInt8s = npt.NDArray[np.uint8]
UInt32s = npt.NDArray[np.uint32]
Int64s = npt.NDArray[np.int64]

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
SHIFT: Final = 24
POSITIVE_MASK: Final = 0x7FFFFFFF
_MASK: Final = 0xFFFFFFFF

ONE_BY_ONE_MAX: Final = 16
"""With no more keys than this, a step over columns costs more than hashing them singly."""
GIANT_BYTES: Final = 256
"""A key longer by this than twice the usual length is hashed singly, if there are few of them."""


def murmur2(key: bytes | memoryview) -> int:
    """The unsigned 32-bit hash of one key."""
    length = len(key)
    value = (SEED ^ length) & _MASK
    whole = length & ~3
    for position in range(0, whole, 4):
        word = int.from_bytes(key[position : position + 4], "little") * MULTIPLIER & _MASK
        word = (word ^ word >> SHIFT) * MULTIPLIER & _MASK
        value = (value * MULTIPLIER & _MASK) ^ word
    if length & 3:
        value = (value ^ int.from_bytes(key[whole:], "little")) * MULTIPLIER & _MASK
    value = (value ^ value >> 13) * MULTIPLIER & _MASK
    return value ^ value >> 15


def positive_murmur2(key: bytes | memoryview) -> int:
    """The hash without its sign bit; modulo the number of partitions it gives the partition."""
    return murmur2(key) & POSITIVE_MASK


def murmur2_column(data: UInt8s, starts: Int64s, lengths: Int64s) -> UInt32s:
    """The hash of every key; key ``i`` is ``lengths[i]`` bytes of ``data`` from ``starts[i]`` on."""
    longest_first = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[longest_first], lengths[longest_first]
    values = np.uint32(SEED) ^ lengths.astype(np.uint32)
    giants = _count_giants(lengths)
    for i in range(giants):
        values[i] = murmur2(data[starts[i] : starts[i] + lengths[i]].tobytes())
    _mix_words(values[giants:], data, starts[giants:], lengths[giants:])
    _mix_tails(values[giants:], data, starts[giants:], lengths[giants:])
    _finish(values[giants:])
    hashes = np.empty_like(values)
    hashes[longest_first] = values
    return hashes


def _count_giants(lengths: Int64s) -> int:
    """How many of the keys, longest first, are so much longer than the others that steps would be wasted."""
    if len(lengths) <= ONE_BY_ONE_MAX:
        return len(lengths)
    usual = int(lengths[ONE_BY_ONE_MAX])
    return int(np.count_nonzero(lengths[:ONE_BY_ONE_MAX] > 2 * usual + GIANT_BYTES))


def _mix_words(values: UInt32s, data: UInt8s, starts: Int64s, lengths: Int64s) -> None:
    """Mix in every key's whole words, one word of each key per step."""
    multiplier = np.uint32(MULTIPLIER)
    shorter_last = -(lengths >> 2)  # ascending, so that the keys with a word left are a prefix
    words: UInt32s = np.ndarray(max(len(data) - 3, 0), "<u4", data, strides=(1,))  # at every byte
    step = 0
    while (end := int(np.searchsorted(shorter_last, -step))) > 0:
        word = words[starts[:end] + 4 * step]
        word *= multiplier
        word ^= word >> np.uint32(SHIFT)
        word *= multiplier
        values[:end] *= multiplier
        values[:end] ^= word
        step += 1


def _mix_tails(values: UInt32s, data: UInt8s, starts: Int64s, lengths: Int64s) -> None:
    """Mix in the one to three bytes after the last whole word."""
    tails = starts + (lengths & ~3)
    for position in (2, 1, 0):
        has_byte = (lengths & 3) > position
        values[has_byte] ^= data[tails[has_byte] + position].astype(np.uint32) << np.uint32(8 * position)
    values[(lengths & 3) > 0] *= np.uint32(MULTIPLIER)


def _finish(values: UInt32s) -> None:
    values ^= values >> np.uint32(13)
    values *= np.uint32(MULTIPLIER)
    values ^= values >> np.uint32(15)
