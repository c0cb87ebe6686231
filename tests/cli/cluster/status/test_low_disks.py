"""What ``status`` says of disks that are nearly full."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sparklog.cli.cluster.status import low_disks
from sparklog.cli.command import DONE

Sparklog = Callable[..., Any]


def test_status_names_a_directory_below_its_floor(sparklog: Sparklog, fake: Any) -> None:
    fake.free_bytes[2] = 499_999_999
    ran = sparklog("status")
    assert (ran.status, ran.err) == (DONE, "")
    assert ran.out.splitlines()[-1] == (
        "disk nearly full: broker 2 refuses what clients write to /disk-of-2, which has 499999999 bytes "
        "free, and log.dirs.free.min.bytes is 500000000: make room there"
    )
    assert json.loads(sparklog("status", "--json").out)["low_disks"] == [
        {"broker_id": 2, "log_dir": "/disk-of-2", "free_bytes": 499_999_999, "floor_bytes": 500_000_000}
    ]


def test_disks_with_room_are_not_named(sparklog: Sparklog, fake: Any) -> None:
    fake.free_bytes[2] = 500_000_000
    assert "disk" not in sparklog("status").out
    assert json.loads(sparklog("status", "--json").out)["low_disks"] == []


def test_a_broker_that_does_not_tell_its_space_is_named_and_spoils_nothing(
    sparklog: Sparklog, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(low_disks, "ANSWER_TIMEOUT_MS", 200)
    fake.cut_before["DescribeLogDirs"] = 1
    fake.free_bytes[2] = 1
    ran = sparklog("status")
    assert ran.status == DONE
    assert ran.err.startswith("sparklog: warning: broker 1 did not tell the free space of its disks: ")
    assert "disk nearly full: broker 2" in ran.out
