"""The figures of sparklog, side by side with Apache Kafka where the machine has it (`benchmarks/setup`).

python benchmarks/run.py                 all parts but the limits, and RESULTS.md anew (half an hour)
python benchmarks/run.py gaps memory     these parts, to the screen
python benchmarks/run.py limits --write  faults, operations, many partitions, disks: RESULTS.md's second half
python benchmarks/run.py gaps --write    and into RESULTS.md, beside what the other parts found last
python benchmarks/run.py rows --quick    small sizes: tries the benchmark, says nothing about speed
python benchmarks/run.py --alone         without Kafka
python benchmarks/run.py --kafka 4.1     some parts beside a Kafka without ZooKeeper
python benchmarks/run.py before --before OTHER/.venv/bin/sparklog    this checkout against another one
"""

import argparse
import signal
import sys
import time
import traceback

from bench import kraft, performance_page, report
from bench.before import command_of
from bench.clusters import Kafka, KafkaBrokers, Pair
from bench.machine import CACHE, sweep
from bench.others import is_busy, wait_until_quiet
from bench.parts import BESIDE_KRAFT, LIMITS, PARTS
from bench.scale import FULL, QUICK, say
from bench.spark import has_connector

ALL = {**PARTS, **LIMITS}
KAFKAS: dict[str, type[KafkaBrokers]] = {"3.9": Kafka, kraft.LINE: kraft.Kraft}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help=f"of {', '.join(PARTS)} (default: all these), {', '.join(LIMITS)} (limits: all these)",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--alone", action="store_true", help="our half only")
    parser.add_argument("--kafka", choices=KAFKAS, default="3.9", help="the line of Kafka beside us")
    parser.add_argument("--before", type=command_of, help="part before: the sparklog of another checkout")
    parser.add_argument("--write", action="store_true", help="put the results into benchmarks/RESULTS.md")
    options = parser.parse_args()
    options.parts = [one for part in options.parts for one in (LIMITS if part == "limits" else [part])]
    unknown = [part for part in options.parts if part not in ALL]
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}: choose from {', '.join([*ALL, 'limits'])}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    CACHE.mkdir(parents=True, exist_ok=True)
    beside_kraft = options.kafka == kraft.LINE
    if beside_kraft and (other := set(options.parts) - set(BESIDE_KRAFT)):
        parser.error(f"{', '.join(sorted(other))}: only {', '.join(BESIDE_KRAFT)} run beside {kraft.LINE}")
    if not options.alone and not KAFKAS[options.kafka].is_there():
        if beside_kraft:
            parser.error(f"the jars of Kafka {kraft.LINE} are not there: benchmarks/setup fetches them")
        say("sparklog: Kafka's jars are not there (benchmarks/setup fetches them): our half only")
    return _run(options.parts or list(BESIDE_KRAFT if beside_kraft else PARTS), options)


def _run(parts: list[str], options: argparse.Namespace) -> int:
    scale = QUICK if options.quick else FULL
    writes = options.write or (not options.parts and not options.quick and not options.alone)
    pair = Pair(kafka=None if options.alone else KAFKAS[options.kafka], before=options.before)
    failed = []
    try:
        for part in parts:
            cores = None if options.quick else wait_until_quiet()
            began = time.monotonic()
            stamp = report.stamp(cores)
            try:
                result = ALL[part](pair, scale)
            except Exception:  # noqa: BLE001 (it is shown, and the other parts are still worth having)
                traceback.print_exc()
                failed.append(part)
                pair.stop()  # what failed may have left a cluster in any state
                continue
            result.stamp = stamp
            if cores is not None and is_busy(cores):
                result.mark_busy()
            say(f"\n{part} ({time.monotonic() - began:.0f} s; {stamp})\n{report.table(result.rows)}")
            say("".join(f"- {note}\n" for note in result.notes))
            if writes:
                report.keep(part if options.kafka == "3.9" else report.beside_kraft(part), result)
    finally:
        pair.stop()
        sweep()
    if writes:
        versions = report.versions()
        if pair.with_kafka:
            versions["Apache Kafka"] = f"3.9.1 ({kraft.RELEASE} without ZooKeeper)"
        if has_connector():
            versions["PySpark and Kafka connector of the Spark parts"] = "4.2.0"
        report.write(list(PARTS), list(LIMITS), list(BESIDE_KRAFT), versions)
        performance_page.write()
    if failed:
        say(f"sparklog: failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
