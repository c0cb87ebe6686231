"""Whatever an ext4 that loses its power leaves, the simulated disk could have left."""

import pytest

from chaos.machines import loop_disk
from simulation.disks.inode import Inode
from simulation.disks.power import Seen
from simulation.real_disks.power_cuts import run

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def _allowed():
    if (why := loop_disk.probe()) is not None:
        pytest.skip(f"not run: {why}")


def compared(seeds, folder):
    tally = run(seeds, folder)
    if tally.cuts == 0:
        pytest.skip("not run: no power cut ended, as somebody else held a copy of the mount")
    return tally


def test_what_ext4_loses_the_simulated_disk_can_lose(tmp_path):
    tally = compared(range(6), tmp_path)
    assert not tally.differences, "\n".join(map(str, tally.differences[:3]))
    assert tally.lossy


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_what_ext4_loses_in_many_power_cuts_the_simulated_disk_can_lose(tmp_path):
    tally = compared(range(1_000, 1_200), tmp_path)
    assert not tally.differences, "\n".join(map(str, tally.differences[:3]))
    assert {"a file is empty", "a file is gone", "a file came back", "a directory is gone"} <= set(
        tally.losses
    )
    assert {"a directory came back", "a file has other bytes", "a file is shorter"} <= set(tally.losses)


def keeps_all_bytes(inode, found):
    return found == inode.data


def has_no_holes_in_pages(inode, found):
    """What an Inode could leave if no page had been written before it was full."""
    return found == inode.synced or inode.data.startswith(found)


@pytest.mark.chaos
@pytest.mark.parametrize("kinder", [keeps_all_bytes, has_no_holes_in_pages])
def test_a_disk_that_is_kinder_to_bytes_than_ext4_is_found_out(tmp_path, monkeypatch, kinder):
    monkeypatch.setattr(Inode, "could_be_left", kinder)
    assert compared(range(40), tmp_path).differences


@pytest.mark.chaos
def test_a_disk_that_keeps_all_names_is_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr(Seen, "changes_kept", lambda seen, changes: len(changes))
    assert compared(range(10), tmp_path).differences
