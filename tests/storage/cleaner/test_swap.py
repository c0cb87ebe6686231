"""A crash at any step of a round: what a start finds is the log before or the log after, never a mixture."""

from pathlib import Path
from typing import Any

import pytest

from sparklog.storage.disk import LocalDisk

STRIDE = 3
some_crashes = pytest.mark.parametrize(
    "first", [0, *(pytest.param(nth, marks=pytest.mark.proof) for nth in range(1, STRIDE))]
)
"""Each third crash is in ``make test``, the others in ``make proof``."""


class PowerCut(Exception):  # noqa: N818
    """The process ends here."""


class CountedDisk(LocalDisk):
    """Ends the process before the n-th change of names."""

    def __init__(self) -> None:
        self.left = 1 << 30
        self.changes = 0

    def _count(self) -> None:
        self.changes += 1
        self.left -= 1
        if self.left < 0:
            raise PowerCut

    def rename(self, old: str, new: str) -> None:
        self._count()
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self._count()
        super().remove(path)

    def write_atomically(self, path: str, data: Any, *, sync: bool = True) -> None:
        self._count()
        super().write_atomically(path, data, sync=sync)

    def sync_directory(self, path: str) -> None:
        self._count()
        super().sync_directory(path)


def filled(make_table, directory: Path):
    disk = CountedDisk()
    table = make_table(directory, disk=disk)
    for nth in range(9):
        table.put((b"%d" % (nth % 2), b"%d" % nth), (b"only-%d" % nth, b"x"))
        if nth % 3 == 2:
            table.roll()
    table.put((b"end", b"x"))
    return table, disk


@pytest.mark.scenario(
    "S57", "A crash at any step of replacing segments leaves the log as before or as after."
)
@some_crashes
def test_a_crash_before_any_change_of_names_leaves_the_log_before_or_after(make_table, tmp_path, first):
    table, disk = filled(make_table, tmp_path / "whole")
    before = table.rows()
    disk.changes = 0
    table.clean()
    after, changes = table.rows(), disk.changes
    assert len(after) < len(before)
    assert changes > 8
    outcomes = []
    for crash in range(first, changes, STRIDE):
        table, disk = filled(make_table, tmp_path / str(crash))
        disk.left = crash
        with pytest.raises(PowerCut):
            table.clean()
        disk.left = 1 << 30
        table.open()
        outcomes.append(table.rows() == after)
        assert table.rows() in (before, after)
        assert not [name for name in table.files() if "swap" in name or "cleaned" in name]
        assert table.values() == dict(sorted({key: value for _, key, value in before}.items()))
        table.clean()
        assert table.rows() == after
        table.open(recovery_point=table.log.log_end_offset)
        assert table.rows() == after
    assert outcomes == sorted(outcomes), "once a swap is announced it is carried out"
    assert {False, True} == set(outcomes)


def test_a_damaged_swap_file_is_not_put_in_place(make_table, tmp_path, caplog):
    table, disk = filled(make_table, tmp_path)
    before = table.rows()
    table.between_steps = lambda: (_ for _ in ()).throw(PowerCut())
    with pytest.raises(PowerCut):
        table.clean()
    (swap,) = (tmp_path / "table-0").glob("*.swap")
    data = bytearray(swap.read_bytes())
    data[-1] ^= 1
    swap.write_bytes(data)
    table.open()
    assert "is damaged" in caplog.text
    assert table.rows() == before
    assert disk.changes


def test_a_half_written_segment_is_swept_away(make_table, tmp_path):
    table, _ = filled(make_table, tmp_path)
    before = table.rows()
    steps = table.round().run()
    for _ in range(4):
        next(steps)
    (path,) = (tmp_path / "table-0").glob("*.cleaned")
    data = path.read_bytes()
    steps.close()
    assert not path.exists()
    path.write_bytes(data)
    table.open()
    assert not path.exists()
    assert table.rows() == before


def filled_with_transactions(make_table, directory: Path):
    """Two producers, one of which aborts, in three segments."""
    disk = CountedDisk()
    table = make_table(directory, disk=disk)
    for nth in range(6):
        producer_id = 1 + nth % 2
        table.put((b"%d" % nth, b"x"), producer=(producer_id, 0, nth // 2), transactional=True)
        table.mark(producer_id, commit=producer_id == 1)
        if nth % 3 == 2:
            table.roll()
    return table, disk


def clean_until_no_marker_is_left(table) -> None:
    table.log.producers.expire(table.clock.now_ms + 1, 0)
    for _ in range(4):
        table.put((b"end", b"%d" % table.log.log_end_offset))
        table.roll()
        table.clean()
        table.clock.now_ms += 2 * 86_400_000


@some_crashes
def test_an_interrupted_swap_leaves_no_entry_of_a_marker_that_is_gone_and_loses_none(
    make_table, tmp_path, first
):
    """A stale entry would hide what its producer writes after the marker that was cleaned away."""
    table, disk = filled_with_transactions(make_table, tmp_path / "whole")
    before = table.log.aborted_transactions(0, 1 << 60)
    assert len(before) == 3
    disk.changes = 0
    clean_until_no_marker_is_left(table)
    assert table.log.aborted_transactions(0, 1 << 60) == []
    assert not [name for name in table.files() if "txnindex" in name]
    for crash in range(first, disk.changes, STRIDE):
        table, disk = filled_with_transactions(make_table, tmp_path / str(crash))
        disk.left = crash
        with pytest.raises(PowerCut):
            clean_until_no_marker_is_left(table)
        disk.left = 1 << 30
        for recovery_point in (table.log.log_end_offset, 0):
            table.open(recovery_point=recovery_point)
            batches = {header.base_offset: header for header in table.headers() if header.record_count}
            entries = table.log.aborted_transactions(0, 1 << 60)
            assert {one.last_offset for one in entries} <= set(batches)
            assert set(entries) >= {one for one in before if one.first_offset in batches}
