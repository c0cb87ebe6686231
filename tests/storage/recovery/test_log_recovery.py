"""What a crash leaves behind, and what recovery makes of it."""

import dataclasses
import logging
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sparklog.records.envelope import split
from sparklog.storage.damage import find_damage
from sparklog.storage.log import Log, LogCorrupt
from sparklog.storage.log_config import LogConfig
from sparklog.storage.segments.segment import Segment

Bench = Any
SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=150)


def written(bench: Bench, batches: int = 25, **kwargs: Any) -> list[bytes]:
    """A log of that many batches, left behind without a word, as SIGKILL leaves it."""
    log = bench.open(SMALL)
    return [bench.append(log, **kwargs) for _ in range(batches)]


def offsets(bench: Bench, log: Log) -> list[int]:
    return [header.base_offset for header in bench.headers(log)]


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x10
    path.write_bytes(data)


def names(bench: Bench) -> list[str]:
    return sorted(os.listdir(bench.directory / "events-3"))


# ---- nothing lost ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recovery_point", [0, 5, 10, 19, 20, 25])
@pytest.mark.parametrize("same_boot", [True, False])
def test_after_a_kill_everything_appended_is_there(
    bench: Bench, recovery_point: int, same_boot: bool
) -> None:
    batches = written(bench, epoch=3, producer=(7, 0, 0))
    log = bench.open(SMALL, recovery_point=recovery_point, same_boot=same_boot)
    assert log.corruption is None
    assert bench.read(log, 0) == b"".join(batches)
    assert log.epochs.entries == [(3, 0)]
    assert set(log.producers.producers) == {7}
    assert log.recovery_point == recovery_point
    bench.append(log)
    assert offsets(bench, log) == list(range(26))


def test_a_clean_stop_needs_no_scan(bench: Bench) -> None:
    log = bench.open(SMALL)
    for number in range(25):
        bench.append(log, epoch=number // 10, timestamp=1_000 + number, producer=(7, 0, number))
    log.close()
    assert log.recovery_point == 25
    again = bench.open(SMALL, recovery_point=25, clean=True)
    assert again.begin_flush().files == ()
    assert (again.log_end_offset, again.recovery_point) == (25, 25)
    assert again.epochs == log.epochs
    assert again.producers == log.producers
    assert again.size_bytes == log.size_bytes
    bench.append(again)
    assert offsets(bench, again) == list(range(26))


def test_a_clean_log_without_checkpoint_is_scanned_from_the_start(bench: Bench) -> None:
    written(bench)
    bench.open(SMALL).close()
    assert bench.open(SMALL, recovery_point=0, clean=True).log_end_offset == 25


def test_a_cleanly_closed_empty_log_opens(bench: Bench) -> None:
    bench.open(SMALL).close()
    log = bench.open(SMALL, clean=True)
    assert log.log_end_offset == 0
    bench.append(log)


def test_all_five_batches_of_a_producer_survive(bench: Bench) -> None:
    log = bench.open(SMALL)
    for number in range(23):
        bench.append(log, producer=(7, 1, number))
    for opened in (bench.open(SMALL), bench.open(SMALL, recovery_point=21)):
        assert [known.first_offset for known in opened.producers.producers[7].batches] == [18, 19, 20, 21, 22]


# ---- torn tails --------------------------------------------------------------------------------------------


def test_a_batch_cut_anywhere_is_a_torn_tail(bench: Bench, tmp_path: Path) -> None:
    batches = written(bench, 5, epoch=2, producer=(7, 0, 0))
    whole = bench.segment_file(0).read_bytes()
    for missing in range(1, len(batches[-1])):
        bench.segment_file(0).write_bytes(whole[:-missing])
        log = bench.open(SMALL)
        assert log.corruption is None
        assert log.log_end_offset == 4
        assert bench.segment_file(0).stat().st_size == 400
        bench.append(log, epoch=2)


def test_of_a_torn_run_of_batches_the_whole_ones_stay(bench: Bench) -> None:
    log = bench.open(SMALL)
    bench.append_all(log, *(bench.batch(number, size=150) for number in range(4)))
    path = bench.segment_file(0)
    path.write_bytes(path.read_bytes()[:-151])
    assert bench.open(SMALL).log_end_offset == 2


def test_a_torn_tail_below_what_was_committed_is_corruption(bench: Bench) -> None:
    written(bench, 5)
    path = bench.segment_file(0)
    path.write_bytes(path.read_bytes()[:-1])
    torn = path.read_bytes()
    log = bench.open(SMALL, high_watermark=5)
    assert log.corruption is not None
    assert (log.corruption.offset, log.corruption.position, log.log_end_offset) == (4, 400, 4)
    assert path.read_bytes() == torn


def test_a_torn_tail_below_what_was_synced_is_corruption_on_any_boot(bench: Bench) -> None:
    written(bench, 5)
    path = bench.segment_file(0)
    path.write_bytes(path.read_bytes()[:-1])
    for same_boot in (True, False):
        assert bench.open(SMALL, recovery_point=5, same_boot=same_boot).corruption is not None


def test_a_damaged_length_is_not_mistaken_for_a_torn_tail(bench: Bench) -> None:
    """The length of batch 2 suddenly reaches past the end of the file: batches 3 and 4 prove it wrong."""
    written(bench, 5)
    flip(bench.segment_file(0), 200 + 9)
    log = bench.open(SMALL)
    assert log.corruption is not None
    assert log.corruption.offset == 2
    assert "reaches past" in log.corruption.reason


# ---- bad batches -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", [0, 3, 12, 24])
@pytest.mark.parametrize("inside", [20, 21, 60, 99])
def test_on_the_same_boot_a_bad_crc_is_corruption_and_nothing_is_cut(
    bench: Bench, victim: int, inside: int
) -> None:
    written(bench)
    flip(bench.segment_file(victim // 10 * 10), victim % 10 * 100 + inside)
    before = {
        name: (bench.directory / "events-3" / name).stat().st_size for name in names(bench) if "log" in name
    }
    log = bench.open(SMALL)
    assert log.corruption is not None
    assert (log.corruption.offset, log.corruption.segment_base) == (victim, victim // 10 * 10)
    assert log.corruption.position == victim % 10 * 100
    assert log.log_end_offset == victim
    assert offsets(bench, log) == list(range(victim))
    after = {name: (bench.directory / "events-3" / name).stat().st_size for name in before}
    assert after == before
    with pytest.raises(LogCorrupt, match="truncate"):
        bench.append(log)


@pytest.mark.parametrize("victim", [3, 12, 24])
def test_the_decision_to_truncate_ends_a_corruption_for_good(bench: Bench, victim: int) -> None:
    written(bench, producer=(7, 0, 0))
    flip(bench.segment_file(victim // 10 * 10), victim % 10 * 100 + 80)
    log = bench.open(SMALL)
    assert log.truncate_to(log.log_end_offset) == victim
    assert log.corruption is None
    log.check_invariants()
    while log.log_end_offset < 30:
        bench.append(log, epoch=1)
    for opened in (log, bench.open(SMALL)):
        assert opened.corruption is None
        assert offsets(bench, opened) == list(range(30))
        assert opened.epochs.entries == [(0, 0), (1, victim)]


def test_a_corruption_is_remembered_even_by_a_clean_stop(bench: Bench) -> None:
    written(bench)
    flip(bench.segment_file(10), 380)
    bench.open(SMALL).close()
    for clean, same_boot in ((True, True), (False, True)):
        log = bench.open(SMALL, recovery_point=13, clean=clean, same_boot=same_boot)
        assert log.corruption is not None
        assert log.log_end_offset == 13
    assert log.truncate_to(13) == 13
    assert "corruption" not in names(bench)


def test_a_corruption_that_healed_still_waits_for_a_decision(bench: Bench) -> None:
    written(bench, 5)
    flip(bench.segment_file(0), 380)
    assert bench.open(SMALL).corruption is not None
    flip(bench.segment_file(0), 380)
    log = bench.open(SMALL)
    assert log.corruption is not None
    assert log.log_end_offset == 5
    assert log.truncate_to(5) == 5
    assert bench.open(SMALL).corruption is None


def with_damage_in_the_first_segment(bench: Bench) -> Log:
    """A log of three segments whose owner found a damaged batch, and retention that leaves the last two."""
    written(bench)
    log = bench.open(dataclasses.replace(SMALL, retention_bytes=600, retention_ms=-1))
    flip(bench.segment_file(0), 380)
    damage = find_damage(log, 0, 2_500)
    assert damage is not None
    log.note_damage(damage)
    return log


@pytest.mark.bug("B35")
def test_damage_is_forgotten_with_the_segment_that_retention_removes(bench: Bench) -> None:
    """Or the next start would find the log damaged, and take no appends to what is whole."""
    log = with_damage_in_the_first_segment(bench)
    assert log.delete_old_segments(25) == 1
    assert log.corruption is None
    assert "corruption" not in names(bench)
    assert log.flush() == 25
    again = bench.open(SMALL, recovery_point=25, log_start=10)
    assert again.corruption is None
    bench.append(again)


def test_damage_is_known_until_the_segment_that_it_is_in_goes(bench: Bench) -> None:
    log = with_damage_in_the_first_segment(bench)
    log.raise_log_start(5)
    assert log.delete_old_segments(9) == 0
    assert log.corruption is not None
    assert "corruption" in names(bench)


@pytest.mark.bug("B35")
def test_damage_is_forgotten_also_if_a_crash_left_word_of_it(bench: Bench) -> None:
    log = with_damage_in_the_first_segment(bench)
    word = (bench.directory / "events-3" / "corruption").read_bytes()
    log.delete_old_segments(25)
    (bench.directory / "events-3" / "corruption").write_bytes(word)
    assert bench.open(SMALL, log_start=10).corruption is None
    assert "corruption" not in names(bench)


def test_word_of_damage_that_cannot_be_read_is_not_forgotten(bench: Bench) -> None:
    with_damage_in_the_first_segment(bench).delete_old_segments(25)
    (bench.directory / "events-3" / "corruption").write_bytes(b"rot")
    assert bench.open(SMALL, log_start=10).corruption is not None


@pytest.mark.scenario(
    "S55", "Damaged logs and indexes: recovery keeps the valid prefix and makes the indexes anew."
)
def test_after_a_reboot_the_log_is_cut_at_the_first_bad_batch_past_the_recovery_point(bench: Bench) -> None:
    written(bench, producer=(7, 0, 0), epoch=1)
    flip(bench.segment_file(10), 380)
    log = bench.open(SMALL, recovery_point=12, same_boot=False)
    assert log.corruption is None
    assert offsets(bench, log) == list(range(13))
    assert [name for name in names(bench) if name.endswith(".log")] == [
        "00000000000000000000.log",
        "00000000000000000010.log",
    ]
    assert log.producers.producers[7].batches[-1].last_offset == 12
    bench.append(log, epoch=1)
    assert offsets(bench, bench.open(SMALL)) == list(range(14))


@pytest.mark.bug("B36")
@pytest.mark.parametrize("place", [7, 10, 13], ids=["in a segment", "at its begin", "in the next one"])
def test_after_a_reboot_the_log_is_cut_where_its_leader_epoch_falls(bench: Bench, place: int) -> None:
    """What a page held before the log was cut: intact, in its place, and not of this log."""
    log = bench.open(SMALL)
    for offset in range(20):
        bench.append(log, epoch=3 if offset < place else 2)
    found = bench.open(SMALL, same_boot=False)
    assert found.corruption is None
    assert offsets(bench, found) == list(range(place))
    assert found.epochs.entries == [(3, 0)]


def test_a_leader_epoch_that_falls_where_no_power_was_cut_is_corruption(bench: Bench) -> None:
    log = bench.open(SMALL)
    for epoch in (1, 1, 0):
        bench.append(log, epoch=epoch)
    found = bench.open(SMALL)
    assert found.corruption is not None
    assert found.corruption.offset == 2
    assert "leader epoch 0 after epoch 1" in found.corruption.reason


def test_after_a_reboot_a_bad_batch_before_the_recovery_point_is_corruption(bench: Bench) -> None:
    written(bench)
    flip(bench.segment_file(10), 380)
    log = bench.open(SMALL, recovery_point=14, same_boot=False)
    assert log.corruption is not None
    assert log.log_end_offset == 13


@pytest.mark.bug("B32", "away", "A broker with one damaged batch never starts again.")
@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("lost", ["leader-epoch-checkpoint", "*.snapshot"])
def test_a_damaged_envelope_in_what_is_trusted_is_corruption_and_no_reason_not_to_start(
    bench: Bench, lost: str, is_clean: bool
) -> None:
    """Without what is derived from batches, also those below the recovery point are read."""
    written(bench, producer=(7, 0, 0))
    bench.open(SMALL).close()
    for path in list((bench.directory / "events-3").glob(lost)):
        path.unlink()
    flip(bench.segment_file(0), 316)  # the magic byte of the fourth batch
    for _ in range(2):
        log = bench.open(SMALL, recovery_point=25, clean=is_clean, same_boot=False)
        assert log.corruption is not None
        assert log.corruption.offset == 3
        assert offsets(bench, log) == [0, 1, 2]


def test_zeros_at_the_end_are_cut_after_a_reboot_and_corruption_without_one(bench: Bench) -> None:
    written(bench, 5)
    with bench.segment_file(0).open("ab") as file:
        file.write(b"\0" * 200)
    shutil.copytree(bench.directory / "events-3", bench.directory / "copy")
    assert bench.open(SMALL).corruption is not None
    log = bench.open(SMALL, same_boot=False, name="copy")
    assert log.corruption is None
    assert log.log_end_offset == 5
    assert bench.segment_file(0, name="copy").stat().st_size == 500


def test_a_missing_segment_in_the_middle_is_corruption(bench: Bench) -> None:
    written(bench)
    bench.segment_file(10).unlink()
    log = bench.open(SMALL)
    assert log.corruption is not None
    assert (log.corruption.offset, log.corruption.segment_base, log.log_end_offset) == (10, 0, 10)
    assert bench.segment_file(20).exists()
    assert log.truncate_to(10) == 10
    assert [name for name in names(bench) if name.endswith(".log")] == ["00000000000000000000.log"]


def test_compaction_may_have_taken_a_segment(bench: Bench) -> None:
    written(bench)
    bench.segment_file(10).unlink()
    log = bench.open(dataclasses.replace(SMALL, cleanup_policy=("compact",)))
    assert log.corruption is None
    assert offsets(bench, log) == [*range(10), *range(20, 25)]


def test_a_log_that_is_shorter_than_its_checkpoints_say_is_corrupt(bench: Bench) -> None:
    written(bench, 5)
    assert bench.open(SMALL, recovery_point=6, clean=True, name="gone").corruption is not None
    assert bench.open(SMALL, high_watermark=6).corruption is not None
    assert bench.open(SMALL, high_watermark=6).truncate_to(9) == 5
    assert bench.open(SMALL, high_watermark=6, same_boot=False).corruption is None


# ---- what is derived from the batches ----------------------------------------------------------------------


@pytest.mark.scenario("S55")
@pytest.mark.parametrize(
    "damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"\xff\0garbage")]
)
@pytest.mark.parametrize("clean", [True, False])
def test_derived_files_may_be_lost_or_damaged(
    bench: Bench, clean: bool, damage: Callable[[Path], None]
) -> None:
    log = bench.open(SMALL)
    for number in range(25):
        bench.append(log, epoch=number // 7, timestamp=1_000 + number % 9, producer=(7, 0, number))
    log.close()
    for name in names(bench):
        if name.endswith((".index", ".timeindex", ".snapshot", "checkpoint")):
            damage(bench.directory / "events-3" / name)
    again = bench.open(SMALL, recovery_point=25 if clean else 20, clean=clean)
    assert offsets(bench, again) == list(range(25))
    assert again.epochs == log.epochs
    assert again.producers == log.producers
    assert again.corruption is None
    assert [segment.greatest_timestamp() for segment in again._segments] == [
        segment.greatest_timestamp() for segment in log._segments
    ]


@pytest.mark.scenario("S55")
def test_rebuilt_indexes_are_those_that_were_written(bench: Bench) -> None:
    log = bench.open(SMALL)
    for number in range(40):
        bench.append(log, size=61 + number * 37 % 200, timestamp=1_000 + number * 7 % 23)
    log.close()
    index_names = [name for name in names(bench) if name.endswith("index")]
    expected = {name: (bench.directory / "events-3" / name).read_bytes() for name in index_names}
    for name in index_names:
        (bench.directory / "events-3" / name).unlink()
    bench.open(SMALL).close()
    assert {name: (bench.directory / "events-3" / name).read_bytes() for name in index_names} == expected


def test_an_epoch_that_wrote_nothing_is_forgotten_by_a_restart(bench: Bench) -> None:
    log = bench.open(SMALL)
    bench.append(log, epoch=1)
    log.assign_epoch(2, 1)
    log.close()
    assert bench.open(SMALL, recovery_point=1, clean=True).epochs.entries == [(1, 0)]


def test_a_stale_epoch_file_cannot_speak_for_batches_that_were_replaced(bench: Bench) -> None:
    written(bench, 5, epoch=5)
    log = bench.open(SMALL)
    log.flush()
    log.truncate_to(3)
    bench.append(log, epoch=7)
    assert bench.open(SMALL, recovery_point=3).epochs.entries == [(5, 0), (7, 3)]


def test_an_epoch_that_went_on_after_all_keeps_its_start(bench: Bench) -> None:
    """Epoch 6 was cut away; the true leader had gone on in epoch 5. The file still knows the old story."""
    log = bench.open(SMALL)
    for offset in range(15):
        bench.append(log, epoch=5 if offset < 12 else 6)
    log.flush()
    log.truncate_to(12)
    for epoch in (5, 5, 7):
        bench.append(log, epoch=epoch)
    assert log.epochs.entries == [(5, 0), (7, 14)]
    assert bench.open(SMALL, recovery_point=12).epochs == log.epochs


@pytest.mark.bug(
    "B69", "words", "After a power cut lookups by time miss a segment, and retention misjudges its age."
)
def test_after_a_reboot_indexes_sealed_since_the_last_flush_are_not_trusted(
    bench: Bench,
) -> None:
    """They were not synced, and an empty index looks like one of a segment without timestamps."""
    log = bench.open(SMALL)
    for number in range(10):
        bench.append(log, timestamp=1_000 + number)
    assert log.flush() == 10
    bench.append(log, timestamp=1_010)
    assert log.segment_bases == [0, 10]
    for suffix in (".index", ".timeindex"):
        bench.segment_file(0, suffix).write_bytes(b"")
    found = bench.open(SMALL, recovery_point=10, same_boot=False)
    assert found.segments[0].greatest_timestamp() == (1_009, 9)
    late = found.segments[0].headers_from_time(1_008)
    assert [one.base_offset for _, one in late if one.max_timestamp_ms >= 1_008] == [8, 9]


def test_snapshots_past_the_recovery_point_do_not_survive_a_reboot(bench: Bench) -> None:
    log = bench.open(SMALL)
    for number in range(15):
        bench.append(log, producer=(7, 0, number))
    log.close()
    path = bench.segment_file(10)
    path.write_bytes(path.read_bytes()[:250])
    assert bench.open(SMALL, recovery_point=11, same_boot=False).log_end_offset == 12
    assert [name for name in names(bench) if name.endswith(".snapshot")] == ["00000000000000000010.snapshot"]


def test_a_snapshot_of_what_was_cut_is_not_believed_later(bench: Bench) -> None:
    log = bench.open(SMALL)
    for number in range(15):
        bench.append(log, producer=(7, 0, number))
    log.truncate_to(8)
    for number in range(12):
        bench.append(log, producer=(8, 0, number))
    again = bench.open(SMALL, recovery_point=10)
    assert again.producers == log.producers
    assert again.producers.producers[7].last_sequence == 7


def test_leftovers_of_interrupted_work_are_swept_away(bench: Bench) -> None:
    written(bench, 15)
    directory = bench.directory / "events-3"
    for name in (
        "00000000000000000099.index",
        "00000000000000000099.timeindex",
        "leader-epoch-checkpoint.tmp",
        "00000000000000000005.log.deleted",
    ):
        (directory / name).write_bytes(b"x")
    (directory / "somebody-elses-file").write_bytes(b"x")
    assert bench.open(SMALL).log_end_offset == 15
    assert not any("99" in name or name.endswith((".tmp", ".deleted")) for name in names(bench))
    assert "somebody-elses-file" in names(bench)


@pytest.mark.parametrize("batches", [25, 20])
@pytest.mark.parametrize("removed", [0, 1, 2])
def test_a_log_that_starts_anew_at_its_end_ends_there_also_after_a_crash_in_between(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, batches: int, removed: int
) -> None:
    """With 20 batches of 100 bytes the active segment is empty already."""
    log = bench.open(SMALL)
    for _ in range(batches):
        bench.append(log)
    if batches == 20:
        log.roll()
    steps = iter(range(removed))
    remove = Segment.remove

    def remove_some(segment: Segment) -> None:
        if next(steps, None) is None:
            raise InterruptedError
        remove(segment)

    with monkeypatch.context() as patched, suppress(InterruptedError):
        patched.setattr(Segment, "remove", remove_some)
        log.truncate_fully_and_start_at(batches)
    again = bench.open(SMALL, recovery_point=0)
    assert (again.corruption, again.log_end_offset) == (None, batches)
    again.truncate_fully_and_start_at(batches)
    again.check_invariants()
    assert (again.segment_bases, again.log_start_offset, again.epochs.entries) == ([batches], batches, [])


# ---- log start ---------------------------------------------------------------------------------------------


def test_the_log_start_is_what_the_checkpoint_says_within_the_log(bench: Bench) -> None:
    written(bench, epoch=2)
    assert bench.open(SMALL, log_start=12).log_start_offset == 12
    assert bench.open(SMALL, log_start=12).epochs.entries == [(2, 12)]
    assert bench.open(SMALL).log_start_offset == 0


def test_a_log_that_lost_all_after_its_log_start_begins_again_there(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    written(bench, 5)
    with caplog.at_level(logging.WARNING):
        log = bench.open(SMALL, log_start=9, same_boot=False)
    assert (log.log_start_offset, log.log_end_offset) == (9, 9)
    bench.append(log)
    assert split(bench.read(log, 9))[0][1].base_offset == 9


def with_a_raised_start(bench: Bench, start: int, bring_to_disk: Callable[[Log], object]) -> list[Any]:
    """A log of three segments and six epochs, two offsets a batch, that gave up what is below ``start``: its
    epochs are on disk, no word of its start is. The epochs of all its batches.
    """
    log = bench.open(SMALL)
    for number in range(25):
        bench.append(log, 2, epoch=number // 5)
    log.assign_epoch(5, 50)
    everything = list(log.epochs.entries)
    log.raise_log_start(start)
    bring_to_disk(log)
    assert epochs_on_disk(bench)[0].endswith(f" {start}")
    return everything[:-1]


def epochs_on_disk(bench: Bench) -> list[str]:
    text: str = (bench.directory / "events-3" / "leader-epoch-checkpoint").read_text()
    return text.splitlines()[2:]


RAISED: Any = pytest.mark.parametrize("start", [10, 11, 20, 23, 24, 40, 47, 50])
"""Where an epoch begins, where a segment does, both, neither; in the middle of a batch; at the end."""


@pytest.mark.bug("B43", "away", "A replica truncates and fetches the same records for ever.")
@RAISED
@pytest.mark.parametrize("clean", [True, False])
def test_a_log_whose_raised_start_is_lost_knows_the_epochs_of_all_that_it_has_again(
    bench: Bench, start: int, clean: bool
) -> None:
    """A leader says of an epoch before its history that it ended where its log begins, and followers cut."""
    everything = with_a_raised_start(bench, start, Log.close if clean else Log.flush)
    again = bench.open(SMALL, recovery_point=50, clean=clean)
    assert (again.corruption, again.log_start_offset) == (None, 0)
    assert again.epochs.entries == everything
    again.flush()
    assert epochs_on_disk(bench) == [f"{epoch} {offset}" for epoch, offset in everything]


@RAISED
@pytest.mark.parametrize("checkpointed", [4, 10, 11, 20, 21])
def test_epochs_that_are_made_anew_begin_where_the_log_does(
    bench: Bench, start: int, checkpointed: int
) -> None:
    everything = with_a_raised_start(bench, start, Log.flush)
    again = bench.open(SMALL, recovery_point=50, log_start=checkpointed)
    assert again.epochs.entries[0] == (checkpointed // 10, checkpointed)
    assert again.epochs.entries[1:] == [entry for entry in everything if entry[1] > checkpointed]
