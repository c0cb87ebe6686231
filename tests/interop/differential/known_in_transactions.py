"""What differs in transactions, and why no client suffers from it; docs/differences.md has it in short."""

from typing import Final

from tests.interop.differential.known import Known

_PENDING: Final = (
    "what a producer commits appears when its transaction does: a group with pending offsets is not deleted, "
    "and neither a deletion of offsets nor a commit that is refused takes pending ones away"
)
_NO_LATE_ABORT: Final = (
    "a producer in another epoch than the present one is fenced; on Kafka it aborts its successor's work"
)
_NO_SUCH_EPOCH: Final = (
    "a batch of an epoch that no producer has is refused; Kafka appends it to an open transaction, whose "
    "marker is then refused for ever"
)
_ANOTHER_TOPIC: Final = (
    "a topic that was made again under its name gets no marker of a transaction that it was not in"
)
_NOTHING_BESIDE_AN_ERROR: Final = (
    "beside an error there are no values; a zero of Kafka's could be an id or an offset"
)

OF_TRANSACTIONS: Final[tuple[Known, ...]] = (
    Known(
        "DescribeTransactions 0",
        r".*\.transaction_start_time_ms",
        "an id without an open transaction has no start; Kafka shows the last one's until it loads the id",
        "-1",
        "'<time>'",
    ),
    Known(
        "DescribeTransactions 0",
        r".*\.(transaction_start_time_ms|producer_id|producer_epoch)",
        _NOTHING_BESIDE_AN_ERROR,
        "-1",
        r"0|'<id \d+>'",
    ),
    Known(
        "DescribeTransactions 0",
        "transaction_states",
        "an id that is named twice is described once",
        dialogue="several_are_described",
    ),
    Known(
        "AddPartitionsToTxn [0-3]",
        r"results_by_topic_v3_and_below(\[0\]\.results_by_partition)?",
        "a partition that is named twice has one row, and a topic without partitions none",
        dialogue="additions_of_every_kind",
    ),
    Known(
        "AddPartitionsToTxn 4",
        r".*\.partition_error_code",
        "TRANSACTION_ABORTABLE is younger than Kafka 3.6, and only brokers ask in this version",
        "48",
        "120",
    ),
    Known(
        r"(InitProducerId [34]|DescribeTransactions 0)",
        ".*",
        _NO_LATE_ABORT,
        dialogue="another_epoch_within_a_transaction",
    ),
    Known("Produce .*", r".*\.error_message", "an error has a text", "'<text>'", "None"),
    Known("Produce .*", r".*\.log_start_offset", _NOTHING_BESIDE_AN_ERROR, "-1", "0"),
    Known(
        "Produce .*",
        r".*\.log_append_time_ms",
        "a topic with its producers' times has no time of an append, nor for a batch that it has already",
        "-1",
        "'<time>'",
    ),
    Known(
        "Produce .*",
        r".*\.(error_code|base_offset)",
        "no transactional batch is appended unverified; Kafka verifies none under an empty id",
        "42|-1",
        "0",
        "empty_ids",
    ),
    Known(
        "Produce .*",
        r".*\.(error_code|error_message|base_offset|log_start_offset)",
        "a batch that the log has is answered with its offsets, whatever has become of its transaction",
        "0|None",
        "48|-1|'<text>'",
        "a_retry_after_the_end",
    ),
    Known(
        "Produce .*",
        r".*\.(error_code|base_offset|log_start_offset)",
        _NO_SUCH_EPOCH,
        "47|-1",
        "0|1",
        "a_newer_epoch_within_an_open_transaction",
    ),
    Known(
        "DescribeProducers 0",
        r".*\.producer_epoch",
        _NO_SUCH_EPOCH,
        "0",
        "1",
        "a_newer_epoch_within_an_open_transaction",
    ),
    Known(
        "Fetch .*",
        r".*\.(high_watermark|last_stable_offset|log_start_offset)",
        "beside OFFSET_OUT_OF_RANGE the offsets of the log are as they are",
        r"\d+",
        "-1",
        "an_open_transaction_holds_readers_back|records_that_are_deleted_under_an_open_transaction",
    ),
    Known(
        "Fetch .*",
        r".*\.aborted_transactions",
        "beside an error no list is as good as an empty one",
        r"\[\]|None",
        r"\[\]|None",
    ),
    Known(
        "Fetch .*",
        r".*\.aborted_transactions",
        "aborted transactions of just the range that is given; Kafka names those up to its next index entry",
        dialogue="transactions_of_two_producers",
    ),
    Known(
        "(Fetch|ListOffsets) .*",
        r"(.*\.)?error_code|responses",
        "an isolation level that there is not is the client's mistake, and Kafka's UNKNOWN_SERVER_ERROR",
        r"42|\[\]",
        dialogue="isolation_levels_that_there_are_not",
    ),
    Known(
        "WriteTxnMarkers .*",
        r".*\.error_code",
        "a marker without a producer is the sender's mistake, and Kafka's UNKNOWN_SERVER_ERROR",
        "42",
        "-1",
    ),
    Known(
        "WriteTxnMarkers .*",
        "markers",
        "a marker for no partition is answered",
        dialogue="markers_for_partitions_that_are_not_there",
    ),
    Known("DescribeProducers 0", r".*\.error_message", "an error has a text", "'<text>'", "None"),
    Known(
        "(ListOffsets .*|DescribeProducers 0)",
        r".*\.(offset|active_producers)",
        _ANOTHER_TOPIC,
        r"0|\[\]",
        dialogue="a_topic_that_is_made_again_under_an_open_transaction",
    ),
    Known(
        "DeleteGroups .*",
        r"results\[0\]\.error_code",
        _PENDING,
        "68",
        "0",
        "a_group_with_pending_offsets_is_deleted",
    ),
    Known(
        "OffsetFetch .*",
        r".*\.(committed_offset|metadata|error_code)",
        _PENDING,
        r"\d|'m'|88",
        "-1|''|0",
        "a_group_with_pending_offsets_is_deleted|pending_offsets_are_deleted|a_zombie_takes_no_offsets_away",
    ),
)
