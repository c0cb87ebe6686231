"""A crash at any step of a round: what a start finds is the log before or the log after, never a mixture."""

from pathlib import Path
from typing import Any

import pytest

from sparklog.storage.disk import LocalDisk


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


def test_a_crash_before_any_change_of_names_leaves_the_log_before_or_after(make_table, tmp_path):
    table, disk = filled(make_table, tmp_path / "whole")
    before = table.rows()
    disk.changes = 0
    table.clean()
    after, changes = table.rows(), disk.changes
    assert len(after) < len(before)
    assert changes > 8
    outcomes = []
    for crash in range(changes):
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
