"""``python -m histories HISTORY.jsonl...``: 0 clean, 1 violated, 2 no verdict."""

import argparse
import gc
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from histories.check import check
from histories.facts import SECOND, Limits
from histories.read import HistoryError, read_history
from histories.report import as_json, as_lines


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    gc.disable()  # a history is millions of objects that all live to the end
    limits = Limits(
        acks_min=options.min_acks,
        windows_min=options.min_faults,
        settle_ns=round(options.settle * SECOND),
        stale_ns=round(options.stale * SECOND),
    )
    try:
        verdict = check(read_history(*options.files), limits)
    except (HistoryError, OSError) as error:
        print(f"no history: {error}", file=sys.stderr)
        return 2
    told = json.dumps(as_json(verdict), indent=2)
    if options.json_file is not None:
        try:
            options.json_file.write_text(told + "\n", encoding="utf-8")
        except OSError as error:
            print(f"no verdict: {error}", file=sys.stderr)
            return 2
    if options.json:
        print(told)
    else:
        print("\n".join(as_lines(verdict)))
    return 1 if verdict.findings else 2 if verdict.invalid else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m histories",
        description="Judge what clients of a cluster saw: tests/proof/docs/history.md.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="HISTORY.jsonl", help="merged by time")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--json-file", type=Path, metavar="FILE", help="write that object here, whatever is printed"
    )
    parser.add_argument(
        "--min-acks", type=_count, default=100, metavar="N", help="fewer acknowledgements prove nothing (100)"
    )
    parser.add_argument(
        "--min-faults", type=_count, default=1, metavar="N", help="as do fewer faults that met traffic (1)"
    )
    parser.add_argument(
        "--settle", type=_seconds, default=60.0, metavar="S", help="what a healed cluster may take (60 s)"
    )
    parser.add_argument(
        "--stale",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="how long a replaced leader may answer (10 s)",
    )
    return parser


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:  # NaN is not between them either
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 on")
    return number


if __name__ == "__main__":
    sys.exit(main())
