"""The latest offset of each key, in bounded memory, for many keys per call.

An open hash table in three numpy arrays: the two halves of a key's 128-bit hash and its latest offset, 24
bytes a slot. A key's hash determines the first slot and the step of its probes. numpy performs one probe of
all keys at once, and each further probe handles only the undecided keys. Two keys with the same hash would
count as one key; ``records.key_hash`` gives the probability.

The operating system supplies zeroed pages when they are first used, so a large map for a small log is cheap.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sparklog.records.key_hash import Hashes, KeyHasher
from sparklog.records.row_columns import Int64s

SLOT_BYTES: Final = 24
_SLOTS_MIN: Final = 1_024


class OffsetMap:
    """Keys to offsets. ``records_max``: the greatest number of keys that the map may need."""

    __slots__ = ("_entries_max", "_hasher", "_lower", "_mask", "_next_offsets", "_upper", "entries")

    def __init__(self, memory_bytes: int, load_factor: float, records_max: int, seed: int) -> None:
        slots_max = max(_SLOTS_MIN, memory_bytes // SLOT_BYTES)
        slots = _SLOTS_MIN
        while slots * 2 <= slots_max and slots < 2 * records_max:
            slots *= 2
        self.entries = 0
        self._hasher = KeyHasher(seed)
        self._mask = np.uint64(slots - 1)
        self._entries_max = max(1, min(slots - 1, int(slots * load_factor)))
        self._upper: Hashes = np.zeros(slots, np.uint64)
        self._lower: Hashes = np.zeros(slots, np.uint64)
        self._next_offsets: Int64s = np.zeros(slots, np.int64)
        """Latest offset + 1; 0 where the slot is free."""

    @property
    def room(self) -> int:
        """How many more keys the map can hold."""
        return self._entries_max - self.entries

    def put(self, keys: Any, offsets: Int64s) -> bool:
        """Store the offsets of ``keys`` (no nulls), ascending and greater than all stored offsets.

        False, with nothing stored, if the new keys exceed ``room``.
        """
        upper, lower = self._hasher.hashes(keys)
        if len(upper) > self.room and self._count_new(upper, lower) > self.room:
            return False
        pending: npt.NDArray[np.int64] = np.arange(len(upper))
        slots, steps = self._first_slots(upper, lower)
        while len(pending):
            at = slots[pending]
            free = self._next_offsets[at] == 0
            claiming = pending[free]
            if len(claiming):
                # numpy stores the last key that claims a slot; the greatest offset is last.
                claimed = at[free]
                self._upper[claimed], self._lower[claimed] = upper[claiming], lower[claiming]
                self._next_offsets[claimed] = offsets[claiming] + 1
                self.entries += int((self._next_offsets[claimed] == offsets[claiming] + 1).sum())
            found = (self._upper[at] == upper[pending]) & (self._lower[at] == lower[pending])
            self._next_offsets[at[found]] = offsets[pending[found]] + 1
            pending = pending[~found]
            slots[pending] = (slots[pending] + steps[pending]) & self._mask
        return True

    def latest(self, keys: Any) -> Int64s:
        """The latest offset of each of ``keys`` (no nulls); -1 for a key that is not in the map."""
        upper, lower = self._hasher.hashes(keys)
        return self._find(upper, lower)

    def _find(self, upper: Hashes, lower: Hashes) -> Int64s:
        latest = np.full(len(upper), -1, np.int64)
        pending: npt.NDArray[np.int64] = np.arange(len(upper))
        slots, steps = self._first_slots(upper, lower)
        while len(pending):
            at = slots[pending]
            next_offsets = self._next_offsets[at]
            found = (self._upper[at] == upper[pending]) & (self._lower[at] == lower[pending])
            found &= next_offsets > 0
            latest[pending[found]] = next_offsets[found] - 1
            pending = pending[~found & (next_offsets > 0)]
            slots[pending] = (slots[pending] + steps[pending]) & self._mask
        return latest

    def _first_slots(self, upper: Hashes, lower: Hashes) -> tuple[Hashes, Hashes]:
        """The first slot and the step of each key's probes. Steps are odd, so they reach every slot."""
        return upper & self._mask, (lower | np.uint64(1)) & self._mask

    def _count_new(self, upper: Hashes, lower: Hashes) -> int:
        unknown = self._find(upper, lower) < 0
        return len(np.unique(np.stack((upper[unknown], lower[unknown])), axis=1)[0])
