"""Rounds of compaction over real files."""

import pytest

from sparklog.core.producers.producer_state import ProducerStates
from sparklog.core.replication.epoch_history import EpochEntry
from sparklog.model.errors import CorruptBatch, SparklogError
from sparklog.model.parts import read_parts
from sparklog.records.envelope import DELETE_HORIZON_BIT, Compression
from sparklog.storage.cleaner.round import CleanerMemory
from sparklog.storage.cleaner.view import CleaningAborted
from sparklog.storage.log_config import LogConfig

DAY_MS = 86_400_000


def test_the_last_value_of_each_key_stays_at_its_offset(table):
    table.put((b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    table.put((b"c", b"1"), kind="arrow")
    table.put((b"b", b"2"), (b"d", b"1"), kind="arrow")
    table.roll()
    report = table.clean()
    assert table.rows() == [(2, b"a", b"2"), (3, b"c", b"1"), (4, b"b", b"2"), (5, b"d", b"1")]
    assert (report.end, report.keys, report.records_read, report.records_kept) == (6, 4, 6, 4)
    assert table.log.log_end_offset == 6


def test_the_active_segment_is_never_cleaned(table):
    table.put((b"a", b"1"))
    table.roll()
    table.put((b"a", b"2"))
    table.put((b"a", b"3"))
    table.clean()
    assert [row[0] for row in table.rows()] == [0, 1, 2]


def test_nothing_at_or_above_the_high_watermark_is_cleaned(table):
    for value in (b"1", b"2", b"3"):
        table.put((b"a", value))
    table.roll()
    table.high_watermark = 2
    assert table.clean().end == 2
    assert [row[0] for row in table.rows()] == [1, 2]


def test_a_read_at_an_offset_that_is_gone_returns_the_next_batch(table):
    for value in range(5):
        table.put((b"a", b"%d" % value))
    table.roll()
    table.put((b"b", b"x"))
    table.clean()
    for offset in range(5):
        assert table.rows(offset) == [(4, b"a", b"4"), (5, b"b", b"x")]


def test_what_was_cleaned_once_is_not_learnt_again_but_cleaned_by_what_is_new(table):
    table.put((b"a", b"1"), (b"b", b"1"))
    table.roll()
    table.clean()
    table.put((b"a", b"2"))
    table.roll()
    report = table.clean()
    assert report.keys == 1
    assert [row[0] for row in table.rows()] == [1, 2]


def test_a_second_round_over_the_same_changes_no_byte(table):
    for nth in range(30):
        table.put((b"%d" % (nth % 7), b"%d" % nth), (b"x", None), kind="arrow" if nth % 2 else "records")
    table.roll()
    table.clean()
    before = table.bytes_from()
    table.checkpoint = None
    report = table.clean()
    assert table.bytes_from() == before
    assert report.records_kept == report.records_read


def test_small_segments_become_one_again(table):
    for nth in range(10):
        table.put((b"%d" % (nth % 2), b"v" * 50))
        table.roll()
    table.clean()
    assert table.log.segment_bases == [0, 10]
    assert [row[0] for row in table.rows()] == [8, 9]
    assert [name for name in table.files() if name.endswith((".log", ".index", ".timeindex"))] == [
        "0" * 20 + ".index",
        "0" * 20 + ".log",
        "0" * 20 + ".timeindex",
        "0" * 18 + "10.log",
    ]


def test_segments_stay_within_the_topics_size(table):
    table.log.config = LogConfig(cleanup_policy=("compact",), segment_bytes=400)
    for nth in range(12):
        table.put((b"%d" % nth, b"v" * 50))
        table.roll()
    table.clean()
    sizes = [segment.size_bytes for segment in table.log.segments[:-1]]
    assert len(sizes) > 1
    assert max(sizes) <= 400


def test_a_tombstone_hides_its_key_at_once_and_goes_after_its_horizon(table):
    table.put((b"a", b"1"), (b"b", b"1"))
    table.put((b"a", None))
    table.roll()
    table.put((b"z", b"1"))
    table.roll()
    table.clean()
    assert table.rows() == [(1, b"b", b"1"), (2, b"a", None), (3, b"z", b"1")]
    marked = next(header for header in table.headers() if header.base_offset == 2)
    assert marked.attributes & DELETE_HORIZON_BIT
    assert marked.base_timestamp_ms == table.clock.now_ms + DAY_MS
    table.clock.now_ms += DAY_MS - 1
    table.put((b"z", b"2"))
    table.roll()
    table.clean()
    assert (2, b"a", None) in table.rows()
    table.clock.now_ms += 1
    table.put((b"z", b"3"))
    table.roll()
    table.clean()
    assert table.rows() == [(1, b"b", b"1"), (5, b"z", b"3")]


def test_a_horizon_is_set_once(table):
    table.put((b"a", None), (b"b", b"1"), kind="arrow", codec=Compression.LZ4)
    table.put((b"c", b"1"))
    table.roll()
    table.clean()
    horizon = table.headers()[0].base_timestamp_ms
    table.clock.now_ms += 1_000
    table.put((b"b", b"2"))
    table.roll()
    table.clean()
    assert table.headers()[0].base_timestamp_ms == horizon
    assert table.rows()[0] == (0, b"a", None)


def test_records_without_a_key_go(table):
    table.put((None, b"1"), (b"a", b"1"), (None, b"2"))
    table.put((None, b"1"), kind="arrow")
    table.put((b"z", b"1"))
    table.roll()
    table.clean()
    assert table.rows() == [(1, b"a", b"1"), (4, b"z", b"1")]


def test_the_end_of_a_cleaned_segment_is_told_by_an_empty_batch(table):
    table.put((b"a", b"1"))
    table.put((None, b"nothing"), (None, b"either"))
    table.roll()
    table.clean()
    assert [(header.last_offset, header.record_count) for header in table.headers()] == [(0, 1), (2, 0)]
    table.put((b"a", b"2"))
    table.roll()
    table.clean()
    assert [(header.last_offset, header.record_count) for header in table.headers()] == [(0, 0), (3, 1)]


@pytest.mark.kafka_bug(
    "K32", "KAFKA-17076", "Compaction removed the log's end; after a restart offsets were assigned twice."
)
def test_kafka_17076_a_log_whose_end_was_cleaned_away_ends_where_it_ended_after_a_restart(table):
    """Or the next leader would give offsets a second time."""
    table.put((b"a", b"1"))
    table.put((None, b"nothing"), (None, b"either"))
    table.roll()
    table.clean()
    table.open()
    assert table.log.log_end_offset == 3
    for path in (table.directory / "table-0").glob("00000000000000000003.*"):
        path.unlink()
    table.open()
    assert table.log.log_end_offset == 3
    assert table.put((b"a", b"2")) == 3


@pytest.mark.bug("B9", "away", "A compacted log forgets what a producer may send again.")
@pytest.mark.scenario("S58", "Compaction keeps each producer's last sequence.")
def test_the_sequences_that_a_producer_may_send_again_survive_its_records(table):
    """Found by the simulation: a start that read them from the log knew the last one only, for ever."""
    for sequence in range(6):
        table.put((b"a", b"1"), producer=(7, 0, sequence))
    table.put((b"a", b"2"), producer=(8, 0, 0))
    table.put((b"z", b"2"))
    table.roll()
    table.clean()
    assert [(h.base_offset, h.record_count, h.base_sequence) for h in table.headers()] == [
        (0, 0, 0),  # the oldest epoch's first
        (1, 0, 1), (2, 0, 2), (3, 0, 3), (4, 0, 4), (5, 0, 5),
        (6, 1, 0),
        (7, 1, -1),
    ]  # fmt: skip
    for path in (table.directory / "table-0").glob("*.snapshot"):
        path.unlink()
    remembered = table.open().producers.producers[7].batches
    assert [batch.first_sequence for batch in remembered] == [1, 2, 3, 4, 5]
    table.log.producers = ProducerStates()
    table.put((b"y", b"1"))
    table.roll()
    table.clean()
    assert 5 not in [header.base_offset for header in table.headers()]


@pytest.mark.bug(
    "B33", "away", "A producer is refused for ever after a tail was truncated from a compacted log."
)
def test_a_log_is_not_cleaned_while_all_that_it_remembers_of_a_producer_may_still_be_cut(table):
    """What the producer sent before is not remembered then, and would go; its next batch would be refused."""
    table.put((b"a", b"0"), producer=(7, 0, 0))
    table.put((b"a", b"1"), (b"b", b"1"))
    table.roll()
    for sequence in range(1, 6):
        table.put((b"a", b"%d" % sequence), producer=(7, 0, sequence))
    table.high_watermark = 3
    assert table.round() is None
    table.high_watermark = 4
    assert table.clean().end == 3

    table.log.truncate_to(4)
    for path in (table.directory / "table-0").glob("*.snapshot"):
        path.unlink()
    assert table.open().producers.producers[7].last_sequence == 1


@pytest.mark.bug(
    "B10",
    "records",
    "Compaction hides where an epoch began, and a replica keeps a record that was never committed.",
)
@pytest.mark.bug("B11", "away", "A replica of a compacted topic begins anew without need.")
def test_where_leader_epochs_begin_survives_the_records_there(table):
    """Found by the simulation: a start rebuilt the epochs from what was left, told a follower too late an end
    of its last epoch, and the follower kept a record that was never committed."""
    table.put((b"a", b"1"))
    table.put((b"a", b"2"), leader_epoch=3)
    table.put((b"a", b"3"), leader_epoch=3)
    table.put((b"z", b"3"), leader_epoch=3)
    table.roll()
    table.clean()
    assert [(h.base_offset, h.record_count) for h in table.headers()] == [(0, 0), (1, 0), (2, 1), (3, 1)]
    (table.directory / "table-0" / "leader-epoch-checkpoint").unlink(missing_ok=True)
    assert table.open().epochs.end_offset_for(0, 4) == (0, 1)
    assert table.log.epochs.end_offset_for(3, 4) == (3, 4)
    assert table.log.epochs.entries[0] == EpochEntry(0, 0)


@pytest.mark.scenario("S59")
def test_aborted_records_go_at_once_and_replace_nothing(table):
    table.put((b"a", b"committed"))
    table.put((b"a", b"aborted"), producer=(1, 0, 0), transactional=True)
    table.put((b"b", b"other"), producer=(2, 0, 0), transactional=True)
    table.mark(1, commit=False)
    table.mark(2, commit=True)
    table.put((b"z", b"1"))
    table.roll()
    table.clean()
    assert table.values() == {b"a": b"committed", b"b": b"other", b"z": b"1"}
    assert (1, b"a", b"aborted") not in table.rows()


def test_an_open_transaction_stops_the_cleaner_before_it(table):
    table.put((b"a", b"1"))
    table.put((b"a", b"2"))
    table.put((b"a", b"3"), producer=(1, 0, 0), transactional=True)
    table.put((b"a", b"4"))
    table.roll()
    assert table.clean().end == 2
    assert [row[0] for row in table.rows()] == [1, 2, 3]


def test_a_transaction_whose_marker_is_not_committed_yet_stops_the_cleaner_too(table):
    table.put((b"a", b"1"))
    table.put((b"a", b"2"), producer=(1, 0, 0), transactional=True)
    table.high_watermark = 2
    table.mark(1, commit=True)
    table.roll()
    assert table.clean().end == 1


@pytest.mark.scenario(
    "S59", "Transaction markers stay until their data is gone, and then until their horizon (KIP-534)."
)
@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_stays_until_no_data_is_left_and_then_until_its_horizon(table, commit: bool):
    table.put((b"f", b"1"))
    table.put((b"a", b"1"), producer=(1, 0, 0), transactional=True)
    marker = table.mark(1, commit=commit)
    table.put((b"a", b"2"))
    table.roll()

    def clean_once_more() -> int | None:
        """Attributes of the marker, or None."""
        table.put((b"z", b"%d" % table.log.log_end_offset))
        table.roll()
        table.clean()
        return next((h.attributes for h in table.headers() if h.base_offset == marker), None)

    attributes = clean_once_more()
    assert attributes is not None
    assert not attributes & DELETE_HORIZON_BIT
    assert table.headers()[1].record_count == 0  # the producer's last batch, without records
    table.log.producers = ProducerStates()
    clean_once_more()
    attributes = clean_once_more()
    assert attributes is not None
    assert attributes & DELETE_HORIZON_BIT
    table.clock.now_ms += DAY_MS - 1
    assert clean_once_more() is not None
    table.clock.now_ms += 1
    assert clean_once_more() is None


def test_the_epoch_that_only_a_marker_tells_survives(table):
    table.mark(5, commit=False, epoch=3)
    table.put((b"a", b"1"))
    table.roll()
    table.clean()
    table.clock.now_ms += 2 * DAY_MS
    for _ in range(3):
        table.put((b"a", b"1"))
        table.roll()
        table.clean()
    assert next((h.producer_id, h.producer_epoch, h.record_count) for h in table.headers()) == (5, 3, 0)


def test_a_full_map_ends_the_round_and_the_next_goes_on_there(table):
    for nth in range(3_000):
        table.put((b"%d" % (nth % 2_000), b"%d" % nth))
    table.roll()
    memory = CleanerMemory(map_bytes=0, load_factor=0.9, chunk_bytes=4_096)
    first = table.clean(memory)
    assert 0 < first.end < 1_000
    rounds = 1
    while table.clean(memory).end < 3_000:
        rounds += 1
        assert rounds < 10
    assert table.values() == {b"%d" % (nth % 2_000): b"%d" % nth for nth in range(1_000, 3_000)}
    assert len(table.rows()) == 2_000


def test_a_batch_with_more_keys_than_the_map_holds_is_an_error_that_names_the_setting(table):
    table.put(*((b"%d" % nth, b"") for nth in range(2_000)))
    table.roll()
    with pytest.raises(SparklogError, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        table.clean(CleanerMemory(map_bytes=0))


def test_a_batch_larger_than_a_chunk_is_cleaned_as_any_other(table):
    table.put((b"a", b"x" * 100_000), (b"a", b"y" * 100_000))
    table.put((b"b", b"1"))
    table.roll()
    table.clean()
    assert [row[0] for row in table.rows()] == [1, 2]


def test_damage_is_never_given_a_new_checksum(table):
    table.put((b"a", b"1"), (b"a", b"2"))
    table.roll()
    path = table.directory / "table-0" / ("0" * 20 + ".log")
    damaged = bytearray(path.read_bytes())
    damaged[-3] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(CorruptBatch):
        table.clean()
    assert path.read_bytes() == damaged
    assert not any("cleaned" in name for name in table.files())


def test_a_truncation_while_cleaning_aborts_the_round_and_loses_nothing(table):
    for nth in range(6):
        table.put((b"a", b"%d" % nth))
        table.roll()
    steps = table.round().run()
    next(steps)
    table.log.truncate_to(4)
    with pytest.raises(CleaningAborted):
        list(steps)
    assert [row[0] for row in table.rows()] == [0, 1, 2, 3]
    assert not any("cleaned" in name or "swap" in name for name in table.files())


def test_a_truncation_in_the_middle_of_a_swap_takes_it_back(table):
    for nth in range(6):
        table.put((b"a", b"%d" % nth))
        table.roll()
    table.between_steps = lambda: table.log.truncate_to(4)
    with pytest.raises(CleaningAborted):
        table.clean()
    assert [row[0] for row in table.rows()] == [0, 1, 2, 3]
    assert not any("cleaned" in name or "swap" in name for name in table.files())
    table.open()
    assert [row[0] for row in table.rows()] == [0, 1, 2, 3]


def test_a_log_that_is_deleted_while_cleaning_aborts_the_round(table):
    for nth in range(6):
        table.put((b"a", b"%d" % nth))
        table.roll()
    steps = table.round().run()
    next(steps)
    table.log.delete()
    with pytest.raises(CleaningAborted):
        list(steps)


def test_segments_that_retention_removes_meanwhile_are_left_out(table):
    table.log.config = LogConfig(cleanup_policy=("compact", "delete"), retention_ms=10)
    table.put((b"a", b"1"))
    table.roll()
    table.clock.now_ms += 1_000
    table.put((b"b", b"1"), (b"b", b"2"))
    table.roll()
    table.put((b"c", b"1"))
    removed: list[int] = []
    table.before_swap = lambda: removed.append(table.log.delete_old_segments(1))
    table.clean()
    assert removed == [1, 0]
    assert table.log.log_start_offset == 1
    assert [row[0] for row in table.rows(1)] == [2, 3]


def test_a_slice_that_is_being_sent_stays_what_it_was(table):
    for nth in range(20):
        table.put((b"a", b"%d" % nth))
    table.roll()
    before = table.bytes_from()
    read = table.log.read(0, 1 << 20, 1 << 60, at_least_one_batch=True)
    table.clean()
    assert read_parts(read.parts) == before
    assert table.bytes_from() != before


def test_appends_and_reads_go_on_while_a_log_is_cleaned(table):
    for nth in range(200):
        table.put((b"%d" % (nth % 3), b"v" * 100))
    table.roll()
    for nth, _ in enumerate(table.round().run()):
        table.put((b"new", b"%d" % nth))
        assert table.rows()[-1][1] == b"new"
        if nth == 3:
            table.roll()
        table.log.check_invariants()
        table.log.flush()
    assert len([row for row in table.rows() if row[1] != b"new"]) == 3


def test_a_flush_that_began_before_a_swap_ends_after_it(table):
    table.put((b"a", b"1"), (b"a", b"2"))
    table.roll()
    flush = table.log.begin_flush()
    table.clean()
    flush.run()
    table.log.finish_flush(flush)
    assert table.log.recovery_point == 2


def test_a_timestamp_finds_its_record_after_others_went(table):
    for nth in range(10):
        table.put((b"%d" % (nth % 2), b"v"), timestamp_ms=1_000 + nth)
    table.put((None, b"v"), timestamp_ms=5_000)
    table.roll()
    table.put((b"x", b"v"), timestamp_ms=1_500)
    table.clean()
    assert table.log.offset_for_timestamp(1_003) == (8, 1_008)
    assert table.log.max_timestamp() == (11, 1_500)
    assert table.log.offset_for_timestamp(2_000) is None


def test_a_topic_that_is_not_compacted_has_no_round(table):
    table.log.config = LogConfig()
    assert table.round() is None
