"""The index of aborted transactions beside a segment: what read-committed readers skip.

    .txnindex   34 bytes   version i16 (0), producer id i64, first offset i64, last offset i64,
                           last stable offset i64

Kafka's format, big-endian, without header. A segment's index has the aborted transactions whose *markers* are
in the segment, in the order of the markers; the last offset is the marker's. Most segments have none, and no
file. ``core.producers.transactions`` says what the last stable offset of an entry is for.

An entry is written to the file as its marker is appended, so that Kafka's tools find it beside a running
broker. The file is not synced then: a start after a crash rebuilds the index of every segment that it checks,
and a sealed segment's file is synced before a recovery point covers it. A damaged file is rebuilt when it is
read. One that was removed looks like that of a segment without aborted transactions.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from sparklog.core.producers.transactions import AbortedTransaction
from sparklog.storage.disk import Disk, File

TRANSACTION_INDEX: Final = ".txnindex"
ABORTED_VERSION: Final = 0
ABORTED_ENTRY: Final = np.dtype(
    [
        ("version", ">i2"),
        ("producer_id", ">i8"),
        ("first_offset", ">i8"),
        ("last_offset", ">i8"),
        ("last_stable_offset", ">i8"),
    ]
)
_FIELDS: Final = len(AbortedTransaction._fields)
_LAST_OFFSET: Final = AbortedTransaction._fields.index("last_offset")
_FIND_AT_A_TIME: Final = 512
"""Entries that a search takes out of the array together: one by one takes nearly twice as long."""

assert ABORTED_ENTRY.itemsize == 34
assert ABORTED_ENTRY.names == ("version", *AbortedTransaction._fields)


class AbortedEntries:
    """Entries in memory, 32 bytes each, in the order of their markers."""

    __slots__ = ("_numbers",)

    def __init__(self, entries: Iterable[AbortedTransaction] = ()) -> None:
        self._numbers: array[int] = array("q")
        for entry in entries:
            self.add(entry)

    def __len__(self) -> int:
        return len(self._numbers) // _FIELDS

    def __getitem__(self, nth: int) -> AbortedTransaction:
        return AbortedTransaction(*self._numbers[nth * _FIELDS : (nth + 1) * _FIELDS])

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return (self[nth] for nth in range(len(self)))

    def add(self, entry: AbortedTransaction) -> None:
        self._numbers.extend(entry)

    def _from(self, offset: int) -> int:
        """The number of the first entry whose marker is at or after ``offset``."""
        return bisect_left(
            range(len(self)), offset, key=lambda nth: self._numbers[nth * _FIELDS + _LAST_OFFSET]
        )

    def truncate(self, end_offset: int) -> None:
        """Remove the entries whose markers are at ``end_offset`` or after."""
        del self._numbers[self._from(end_offset) * _FIELDS :]

    def find(self, start_offset: int, end_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """The entries that overlap ``[start_offset, end_offset)``, and whether later segments have none."""
        found: list[AbortedTransaction] = []
        for first in range(self._from(start_offset), len(self), _FIND_AT_A_TIME):
            part = self._numbers[first * _FIELDS : (first + _FIND_AT_A_TIME) * _FIELDS]
            for entry in map(AbortedTransaction, *(part[nth::_FIELDS] for nth in range(_FIELDS))):
                if entry.first_offset < end_offset:
                    found.append(entry)
                if entry.last_stable_offset >= end_offset:
                    return found, True
        return found, False

    def to_bytes(self) -> bytes:
        columns = np.array(self._numbers, dtype=np.int64).reshape(-1, _FIELDS)
        rows = np.zeros(len(columns), dtype=ABORTED_ENTRY)
        for nth, name in enumerate(AbortedTransaction._fields):
            rows[name] = columns[:, nth]
        return rows.tobytes()

    @classmethod
    def parse(cls, base_offset: int, data: bytes) -> "AbortedEntries | None":
        """The entries in ``data``; None if they cannot be those of a segment from ``base_offset`` on."""
        if len(data) % ABORTED_ENTRY.itemsize:
            return None
        rows: np.ndarray[Any, np.dtype[np.void]] = np.frombuffer(data, dtype=ABORTED_ENTRY)
        first, last = rows["first_offset"], rows["last_offset"]
        is_sound = (
            bool(np.all(rows["version"] == ABORTED_VERSION))
            and bool(np.all(last[1:] > last[:-1]))
            and bool(np.all((first >= 0) & (first < last) & (last >= base_offset)))
        )
        if not is_sound:
            return None
        columns = np.stack([rows[name].astype(np.int64) for name in AbortedTransaction._fields], axis=1)
        entries = cls()
        entries._numbers.frombytes(columns.tobytes())
        return entries


def read_entries(disk: Disk, path: str, base_offset: int) -> AbortedEntries | None:
    """The entries in a file, none if there is no file; None if it is damaged."""
    return AbortedEntries.parse(base_offset, disk.read(path)) if disk.exists(path) else AbortedEntries()


class TransactionIndex:
    """The index of one segment, and its file. The log that owns the segment serialises all calls."""

    __slots__ = ("_base_offset", "_disk", "_entries", "_file", "_is_saved", "path")

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self.path = path
        self._disk = disk
        self._base_offset = base_offset
        self._entries: AbortedEntries | None = None
        """None until they are read."""
        self._file: File | None = None
        self._is_saved = True

    def entries(self) -> AbortedEntries | None:
        """None if the file is damaged: ``replace`` the entries then."""
        if self._entries is None:
            self._entries = read_entries(self._disk, self.path, self._base_offset)
        return self._entries

    def forget(self) -> None:
        """Begin anew, without entries, before ``note`` is called for those of each batch."""
        self._entries, self._file, self._is_saved = AbortedEntries(), None, False

    def note(self, entry: AbortedTransaction) -> None:
        """Add an entry, which ``save`` writes."""
        assert self._entries is not None, self.path
        self._entries.add(entry)
        self._is_saved = False

    def append(self, added: Sequence[AbortedTransaction]) -> None:
        """Add entries, also to the file, in one write."""
        if not added:
            return
        self.save()
        entries = self.entries()
        assert entries is not None, self.path
        if self._file is None:
            self._file = self._disk.open(self.path, create=True)
        self._file.append(AbortedEntries(added).to_bytes())
        for entry in added:
            entries.add(entry)

    def replace(self, entries: AbortedEntries) -> None:
        """Write other entries instead of damaged ones, synced, because a recovery point may cover them."""
        self._entries, self._file, self._is_saved = entries, None, False
        self.save(sync=True)

    def truncate(self, end_offset: int) -> None:
        """Remove the entries whose markers are at ``end_offset`` or after. The index must be sound."""
        entries = self.entries()
        assert entries is not None, self.path
        before = len(entries)
        entries.truncate(end_offset)
        if len(entries) < before:
            self._file, self._is_saved = None, False
            self.save()

    def save(self, *, sync: bool = False) -> None:
        """Write the file, or remove it, unless it has the entries."""
        if self._is_saved or self._entries is None:
            return
        if len(self._entries):
            self._disk.write_atomically(self.path, self._entries.to_bytes(), sync=sync)
        elif self._disk.exists(self.path):
            self._disk.remove(self.path)
        self._is_saved = True

    def save_aside(self, suffix: str) -> None:
        """Write the file, synced and even without entries, for a segment without its final name. Who gives
        it that name renames this file too.
        """
        assert self._entries is not None, self.path
        self._disk.write_atomically(self.path + suffix, self._entries.to_bytes())
        self._is_saved = True

    def cool(self) -> None:
        """Release file and entries; both are read again on use. No entries take no room, and stay."""
        self._file = None
        if self._entries:
            self._entries = None

    def remove(self) -> None:
        if self._disk.exists(self.path):
            self._disk.remove(self.path)
        self._entries, self._file, self._is_saved = AbortedEntries(), None, True
