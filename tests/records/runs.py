"""Runs of batches, as a log holds them."""

from sparklog.records.envelope import parse_header, stamp

FIRST_OFFSET = 77


def run_of(*batches: bytes) -> bytearray:
    """The batches one after the other, stamped with offsets from ``FIRST_OFFSET`` on."""
    run, offset = bytearray(), FIRST_OFFSET
    for one in batches:
        position = len(run)
        run += one
        stamp(run, position, offset, 1)
        offset += parse_header(one).last_offset_delta + 1
    return run
