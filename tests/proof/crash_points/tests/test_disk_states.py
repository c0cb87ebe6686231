"""What a power cut may leave: not less than was synced, and every way of losing the rest."""

import random

from crash_points.calls import Change
from crash_points.disk_states import Machine, Tree


def states(machine: Machine) -> list[Tree]:
    return list(machine.states_after_power_cut(random.Random(1), 30))


def machine_after(*changes: Change) -> Machine:
    machine = Machine.of({"a": None, "a/old": b"kept"})
    for change in changes:
        machine.apply(change)
    return machine


def test_where_everything_is_synced_there_is_one_state() -> None:
    machine = machine_after(
        Change("create", "a/new"),
        Change("write", "a/new", 0, b"12"),
        Change("fsync", "a/new"),
        Change("fsync", "a"),
    )
    assert {repr(state) for state in states(machine)} == {repr({"a": None, "a/new": b"12", "a/old": b"kept"})}


def test_a_new_file_that_was_synced_can_lose_its_name_and_one_that_was_not_its_bytes() -> None:
    synced = states(
        machine_after(Change("create", "a/new"), Change("write", "a/new", 0, b"12"), Change("fsync", "a/new"))
    )
    assert {state.get("a/new") for state in synced} == {None, b"12"}
    unsynced = states(machine_after(Change("create", "a/new"), Change("write", "a/new", 0, b"12")))
    assert {state.get("a/new") for state in unsynced} == {None, b"", b"12", b"\0\0"}


def test_a_rename_leaves_the_old_file_or_the_new_one_with_or_without_its_bytes() -> None:
    machine = machine_after(
        Change("create", "a/tmp"),
        Change("write", "a/tmp", 0, b"new"),
        Change("rename", "a/tmp", new_path="a/old"),
    )
    assert {state["a/old"] for state in states(machine)} == {b"kept", b"new", b"", bytes(3)}


def test_a_long_write_tears_at_sectors_which_persist_in_any_order() -> None:
    found = {state["a/old"] for state in states(machine_after(Change("write", "a/old", 4, b"x" * 2_000)))}
    assert b"kept" + b"x" * 508 in found
    assert b"kept" + b"x" * 508 + bytes(2_004 - 512) in found
    assert any(content is not None and content.endswith(b"x") and b"\0" in content for content in found)
    assert all(content is not None and content.startswith(b"kept") for content in found)


def test_a_file_of_several_writes_may_have_the_length_of_an_earlier_one_and_zeros() -> None:
    machine = machine_after(
        Change("write", "a/old", 4, b"first"),
        Change("write", "a/old", 9, b"second"),
        Change("create", "a/new"),
    )
    zeros_at_an_earlier_length = {"a": None, "a/old": b"kept" + bytes(5)}
    assert repr(zeros_at_an_earlier_length) in {repr(state) for state in states(machine)}
    assert machine.allows(zeros_at_an_earlier_length)
    assert not machine.allows({"a": None, "a/old": b"kept" + bytes(4)})


def test_names_of_one_directory_are_lost_from_the_last_change_on() -> None:
    found = states(machine_after(Change("create", "a/1"), Change("create", "a/2"), Change("unlink", "a/old")))
    assert {tuple(sorted(state)) for state in found} == {
        ("a", "a/old"),
        ("a", "a/1", "a/old"),
        ("a", "a/1", "a/2", "a/old"),
        ("a", "a/1", "a/2"),
    }


def test_a_directory_that_was_renamed_takes_its_files_along() -> None:
    found = states(machine_after(Change("rename", "a", new_path="b")))
    assert {tuple(sorted(state)) for state in found} == {("a", "a/old"), ("b", "b/old")}


def test_what_was_written_behind_a_cut_is_there_only_if_the_cut_is() -> None:
    machine = machine_after(Change("truncate", "a/old", 1), Change("write", "a/old", 1, b"EW"))
    assert b"kEWt" not in {state["a/old"] for state in states(machine)}
