"""When a cluster is at rest: every replica's log as its disk has it, read by the decoder of histories.

A dump is what rule L11 judges: replicas are committed to their ends, and the same to the byte. The decoder
knows nothing of sparklog's own. Where a log begins, and its high watermark, is the running replica's word:
checkpoints of these are written now and then.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

from histories.batches import Batch, decode_envelope, read_batches
from histories.soundness import DamagedBatchError
from simulation.disks.disk import LOG, SimulatedDisk
from simulation.invariants.invariant import Violation
from simulation.machines.broker import SimulatedBroker
from simulation.recorder import Recorder, SeenDump
from simulation.truth import PartitionTruth
from sparklog.model.ids import TopicPartition

Decode = Callable[[bytes], Batch]


def dump_replicas(
    truths: Iterable[PartitionTruth], brokers: Iterable[SimulatedBroker], recorder: Recorder
) -> None:
    decode = lru_cache(maxsize=None)(decode_envelope)  # replicas hold the same bytes
    by_id = {broker.machine.broker_id: broker for broker in brokers}
    for truth in truths:
        for broker_id in truth.state.replicas if truth.state is not None else ():
            recorder.dumps.append(_dump(truth, by_id[broker_id], decode))


def _dump(truth: PartitionTruth, broker: SimulatedBroker, decode: Decode) -> SeenDump:
    where, host = truth.topic_partition, broker.machine.host
    partition = None if broker.replicas is None else broker.replicas.get(where)
    assert partition is not None, f"{where} is at rest on {host}"
    try:
        end, batches = _read(broker.machine.disk, where, decode)
    except DamagedBatchError as error:
        raise Violation("ReplicasAreEqual", f"{where} on {host}: {error}") from error
    return SeenDump(
        host,
        where,
        partition.log.local_start_offset,
        end,
        partition.high_watermark,
        tuple(batches),
        is_compacted=truth.is_thinned,
    )


def _read(disk: SimulatedDisk, where: TopicPartition, decode: Decode) -> tuple[int, list[Batch]]:
    """Where the log ends, and what is in it."""
    (log,) = [names for path, names in disk.directories.items() if path.endswith(f"/{where}")]
    end, found = 0, []
    for name in sorted(log):
        if name.endswith(LOG):
            end = max(end, int(name.removesuffix(LOG)))
            for _, batch in read_batches(bytes(log[name].data), decode):
                end = max(end, batch.last_offset + 1)
                found.append(batch)
    return end, found
