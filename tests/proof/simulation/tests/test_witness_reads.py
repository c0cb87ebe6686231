"""The witness looks only at what a step has changed, and knows what looking at everything would tell."""

from simulation.plans.plan import draw_plan
from simulation.run import simulate
from simulation.truth import ReplicaView, _piece, entry_of
from sparklog.model.ids import BrokerId
from sparklog.model.transaction_end import TransactionEnd
from sparklog.records.control import build_marker
from sparklog.records.envelope import parse_header


def test_after_a_swap_of_segments_the_witness_knows_what_reading_the_whole_log_tells(monkeypatch):
    read_swapped = ReplicaView._read_swapped
    swaps = []

    def read_both(view, log, is_thinned):
        found = read_swapped(view, log, is_thinned)
        fresh = ReplicaView(view.broker_id)
        assert found == fresh._read(log, log.log_start_offset, log.log_end_offset, is_thinned)
        assert {entry.base_offset: view.kept[entry.base_offset] for entry in found} == fresh.kept
        swaps.append(len(found))
        return found

    monkeypatch.setattr(ReplicaView, "_read_swapped", read_both)
    plan = next(plan for seed in range(1, 100) if (plan := draw_plan(seed)).is_compacted)
    assert simulate(plan).violation is None
    assert len([batches for batches in swaps if batches]) > 10


def test_a_marker_is_what_it_was_before_it_rotted():
    """Seed 4072: a scrubber mended the marker, and the witness still took it for one that ends nothing."""
    end = TransactionEnd(is_commit=True, coordinator_epoch=3)
    whole = bytes(build_marker(end, producer_id=7, producer_epoch=0, now_ms=1))
    rotten = bytearray(whole)
    rotten[-3] ^= 1
    view, entry = ReplicaView(BrokerId(1)), entry_of(parse_header(whole))
    for data in (whole, bytes(rotten)):
        view._note(_piece(data, False))
        assert view.part(entry).end == end
