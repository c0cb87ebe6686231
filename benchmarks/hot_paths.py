"""What the pure code on the way of each batch costs, in this tree and in another one, side by side.

    python benchmarks/hot_paths.py OTHER_TREE [--rounds 5]

OTHER_TREE is a checkout of another commit, as ``git worktree add`` makes it. Each round measures every piece
of work in a fresh process per tree, trees taking turns, in CPU time and not by the clock, so that a busy
machine disturbs both alike. Printed are medians and, what counts, this tree's share of the other's time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

REPEATS: Final = 7
CALLS: Final = 200
MEASURE: Final = "--measure"
HERE: Final = Path(__file__).resolve().parents[1]

Work = dict[str, Callable[[], object]]


def works() -> Work:
    """Imported here, so that they are the ones of the tree that this process measures."""
    from sparklog.model.parts import read_parts
    from sparklog.records.envelope import parse_header
    from sparklog.records.kafka.encode import Record, build_records_batch
    from sparklog.records.validate import check_produced
    from sparklog.wire import codec
    from sparklog.wire.messages.data import fetch, produce

    records = [Record(value=bytes(1_000), timestamp_ms=number) for number in range(16)]
    batch = build_records_batch(records, now_ms=1)
    data = [produce.ProducePartition(index=0, records=batch)]
    request = produce.ProduceRequest(topic_data=[produce.ProduceTopic(name="t", partition_data=data)])
    produced = codec.encode_request(request, 9, 1, "c")[4:]
    found: Work = {
        "check a produced batch of 16": lambda: check_produced(
            batch, max_batch_bytes=1 << 20, payload_kinds=()
        ),
        "read an envelope": lambda: parse_header(batch),
        "decode a produce request": lambda: codec.decode_request(produced),
    }
    topic = uuid.uuid4()
    for count in (2, 100):
        asked = [
            fetch.FetchPartition(partition=n, fetch_offset=9, partition_max_bytes=1) for n in range(count)
        ]
        asking = fetch.FetchRequest(replica_id=1, topics=[fetch.FetchTopic(topic_id=topic, partitions=asked)])
        told = [fetch.FetchPartitionData(partition_index=n, high_watermark=9) for n in range(count)]
        telling = fetch.FetchResponse(
            responses=[fetch.FetchableTopicResponse(topic_id=topic, partitions=told)]
        )
        for name, work in _codings(read_parts, asking, telling).items():
            found[f"{name} of {count}"] = work
    return found


def _codings(read_parts: Callable[..., bytes], asking: object, telling: object) -> Work:
    from sparklog.wire.codec import decode_request, decode_response, encode_request, encode_response

    asked = encode_request(asking, 15, 1, "c")[4:]  # type: ignore[arg-type]
    told = read_parts(encode_response(telling, 15, 1))[4:]  # type: ignore[arg-type]
    return {
        "encode a fetch request": lambda: encode_request(asking, 15, 1, "c"),  # type: ignore[arg-type]
        "decode a fetch request": lambda: decode_request(asked),
        "encode a fetch response": lambda: encode_response(telling, 15, 1),  # type: ignore[arg-type]
        "decode a fetch response": lambda: decode_response(1, 15, told),
    }


def measure() -> dict[str, float]:
    """Microseconds of CPU per call: the least of some repeats."""
    found: dict[str, float] = {}
    for name, work in works().items():
        work()
        spent = []
        for _ in range(REPEATS):
            begun = time.process_time_ns()
            for _ in range(CALLS):
                work()
            spent.append((time.process_time_ns() - begun) / CALLS / 1_000)
        found[name] = min(spent)
    return found


def measure_in(tree: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, MEASURE],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(tree)},
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def main() -> None:
    if sys.argv[1:] == [MEASURE]:
        print(json.dumps(measure()))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("other", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    pairs = [(measure_in(HERE), measure_in(options.other.resolve())) for _ in range(options.rounds)]
    print(f"{'work':34}{'here us':>10}{'other us':>10}{'share':>8}")
    for name in pairs[0][0]:
        ours, theirs = (statistics.median(pair[side][name] for pair in pairs) for side in (0, 1))
        share = statistics.median(here[name] / other[name] for here, other in pairs)
        print(f"{name:34}{ours:10.2f}{theirs:10.2f}{share:8.2f}")


if __name__ == "__main__":
    main()
