"""128-bit hashes of many keys at once.

Compaction stores keys by their hashes, as Kafka does with MD5. If two keys of a log had the same hash, the
older record would be lost, so this must be practically impossible. Hashing keys one by one would cost more
than the rest of compaction, so numpy hashes all keys at once by *multilinear* hashing. Two different keys get
the same 32 bits with probability 2^-32, if the coefficients are random and unknown to the author of the keys
(Carter and Wegman; Lemire and Kaser). Four such hashes with separate coefficients give 128 bits. For n keys
the probability of any collision is below n^2 / 2^129: about 10^-21 for a thousand million keys.

    h = ((a0 + a1 * length + a2 * word1 + a3 * word2 + ...) mod 2^64) >> 32

Words have 4 bytes. The last word is padded with zeros; the length distinguishes padding from data.
Coefficients are drawn from a seed, so that a simulation is repeatable; use another seed for every table of
hashes.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

LANES: Final = 4
_WORD_BYTES: Final = 8
_LOW: Final = np.uint64(0xFFFF_FFFF)
_HALF: Final = np.uint64(32)
_GOLDEN: Final = 0x9E37_79B9_7F4A_7C15
_MASK: Final = 2**64 - 1


class KeyHasher:
    """Hashes keys with coefficients drawn from ``seed``."""

    __slots__ = ("_coefficients", "_state")

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK
        self._coefficients: list[Hashes] = []

    def hashes(self, keys: Any) -> tuple[Hashes, Hashes]:
        """The upper and the lower half of each key's hash; ``keys`` is a binary array without nulls."""
        starts, lengths, octets = _layout(keys)
        first = self._round(0)
        second = self._round(1)
        lanes = [first[lane] + second[lane] * lengths.view(np.uint64) for lane in range(LANES)]
        words = np.ndarray((len(octets) - _WORD_BYTES + 1,), "<u8", octets, strides=(1,))
        active: npt.NDArray[np.int64] | None = None
        nth = 0
        while True:
            left = lengths - nth * _WORD_BYTES
            if active is None and left.size and left.min() > 0:
                rows: Any = slice(None)
            else:
                active = np.flatnonzero(left > 0)
                if not len(active):
                    break
                rows = active
            word = _words(words, starts[rows] + nth * _WORD_BYTES, left[rows])
            self._mix(lanes, rows, word, nth)
            nth += 1
        return (
            (lanes[0] >> _HALF) << _HALF | lanes[1] >> _HALF,
            (lanes[2] >> _HALF) << _HALF | lanes[3] >> _HALF,
        )

    def _mix(self, lanes: list[Hashes], rows: Any, word: Hashes, nth: int) -> None:
        low, high = word & _LOW, word >> _HALF
        for_low, for_high = self._round(2 + 2 * nth), self._round(3 + 2 * nth)
        for lane in range(LANES):
            lanes[lane][rows] += low * for_low[lane] + high * for_high[lane]

    def _round(self, nth: int) -> Hashes:
        """The ``nth`` coefficient of each lane, drawn on first use."""
        while len(self._coefficients) <= nth:
            drawn = [self._draw() for _ in range(LANES)]
            self._coefficients.append(np.array(drawn, np.uint64))
        return self._coefficients[nth]

    def _draw(self) -> int:
        """The next number of SplitMix64."""
        self._state = (self._state + _GOLDEN) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
        return mixed ^ (mixed >> 31)


def _layout(keys: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Each key's start and length, and the bytes of all keys, padded by one word."""
    _, offsets, data = keys.buffers()
    bounds = np.frombuffer(offsets, np.int32, len(keys) + 1, keys.offset * 4).astype(np.int64)
    first, last = int(bounds[0]), int(bounds[-1])
    octets = np.zeros(last - first + _WORD_BYTES, np.uint8)
    if last > first:
        octets[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
    return bounds[:-1] - first, np.diff(bounds), octets


def _words(words: Any, positions: npt.NDArray[np.int64], left: npt.NDArray[np.int64]) -> Hashes:
    """The next 8 bytes of each key as a number; bytes beyond the key's end count as zeros."""
    found: Hashes = words[positions].astype(np.uint64)
    partial = np.flatnonzero(left < _WORD_BYTES)
    if len(partial):
        bits = (left[partial] * _WORD_BYTES).astype(np.uint64)
        found[partial] &= (np.uint64(1) << bits) - np.uint64(1)
    return found
