"""What a failed fsync or write costs: only what somebody was told of."""

from types import SimpleNamespace

import pytest

from simulation.disks.disk import SimulatedDisk
from simulation.disks.inode import Inode
from simulation.plans.faults import Fault
from simulation.strikes.disks import DiskStrikes
from sparklog.storage.small_files.clean_stop import CLEAN_MARKER

FAILED = "/broker-1/data"


class Atlas:
    """Others have all; ``suspect`` is what ZooKeeper says."""

    def __init__(self, suspect) -> None:
        self.suspect, self.tainted = set(suspect), 0

    def distrust_what_is_doomed(self, machine) -> None:
        """Nobody asks here."""

    def others_have_all(self, broker_id) -> bool:
        return True

    def marked_suspect(self, machine) -> set[str]:
        return self.suspect

    def taint_what_is_doomed(self, machine) -> None:
        self.tainted += 1


def is_lost(*, before, suspect) -> bool:
    """Whether the start after ``before``, whose log directory failed, has lost something."""
    disk = SimulatedDisk()
    disk.failed = {FAILED}
    cluster = SimpleNamespace(
        machines={"broker-1": SimpleNamespace(broker_id=1, disk=disk)},
        brokers={} if before is None else {"broker-1": before},
        plan=SimpleNamespace(seed=1),
        witness=SimpleNamespace(excuses=SimpleNamespace(has_damage=False)),
        story=SimpleNamespace(tell=lambda who, what: None),
        schedule=SimpleNamespace(after=lambda delay_us, process, action: action()),
    )
    atlas = Atlas(suspect)
    DiskStrikes(cluster, None, atlas).settle_doomed("broker-1", 1)
    return atlas.tainted > 0


def broker(*, has_registered, has_failed, has_told=False):
    return SimpleNamespace(has_registered=has_registered, has_failed=has_failed, has_told=has_told)


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(None, id="there was none"),
        pytest.param(broker(has_registered=True, has_failed=True), id="it stopped for it"),
        pytest.param(broker(has_registered=False, has_failed=False), id="its start failed with it: 800265"),
    ],
)
def test_who_ended_with_its_disk_has_lost_something_only_if_zookeeper_was_told(before) -> None:
    assert not is_lost(before=before, suspect=[])
    assert is_lost(before=before, suspect=[FAILED])


def test_a_process_that_ended_without_a_report_has_lost_its_data() -> None:
    """Else a broker that takes a failed write for nothing would be excused by its own silence."""
    assert is_lost(before=broker(has_registered=True, has_failed=True, has_told=True), suspect=[])


def test_who_went_on_without_that_directory_tells_of_it_and_has_lost_something() -> None:
    assert is_lost(before=broker(has_registered=True, has_failed=False), suspect=[])


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_rots_at_rest_only_where_the_next_start_reads_it(is_clean) -> None:
    """Behind a clean stop it reads nothing, and a broker may not have taken the mark of that; seed 840897."""
    spared: list[Fault] = []
    rotten: list[bool] = []
    names = {CLEAN_MARKER: Inode()} if is_clean else {}
    disk = SimpleNamespace(directories={FAILED: names}, rot=lambda draw, *, logs: rotten.append(logs))
    cluster = SimpleNamespace(
        machines={"broker-1": SimpleNamespace(broker_id=1, disk=disk)},
        is_up=lambda host: True,
        plan=SimpleNamespace(seed=1),
        witness=SimpleNamespace(excuses=SimpleNamespace(expect_nothing=lambda broker_id: None)),
        story=SimpleNamespace(tell=lambda who, what: None),
    )
    atlas = SimpleNamespace(may_lose=lambda broker: True, taint=lambda broker: None, spare=spared.append)
    seats = SimpleNamespace(take_down=lambda fault, *, is_reported: None)
    fault = Fault(1, 2, "rot a log", "broker-1", "", 3, 0.0)
    DiskStrikes(cluster, seats, atlas).by_kind["rot a log"](fault)
    assert (spared, rotten) == (([fault], []) if is_clean else ([], [True]))
