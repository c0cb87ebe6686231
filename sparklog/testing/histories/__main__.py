"""``python -m sparklog.testing.histories HISTORY.jsonl...``: 0 clean, 1 violated, 2 no verdict."""

import argparse
import gc
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from sparklog.testing.histories.check import check
from sparklog.testing.histories.facts import SECOND, Limits
from sparklog.testing.histories.read import HistoryError, read_history
from sparklog.testing.histories.report import as_json, as_lines


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
    if options.json:
        print(json.dumps(as_json(verdict), indent=2))
    else:
        print("\n".join(as_lines(verdict)))
    return 1 if verdict.findings else 2 if verdict.invalid else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sparklog.testing.histories",
        description="Judge what clients of a cluster saw: docs/format/history.md.",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="HISTORY.jsonl", help="merged by time")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--min-acks", type=int, default=100, metavar="N", help="fewer acknowledgements prove nothing (100)"
    )
    parser.add_argument(
        "--min-faults", type=int, default=1, metavar="N", help="as do fewer faults that met traffic (1)"
    )
    parser.add_argument(
        "--settle", type=float, default=60.0, metavar="S", help="what a healed cluster may take (60 s)"
    )
    parser.add_argument(
        "--stale", type=float, default=10.0, metavar="S", help="how long a replaced leader may answer (10 s)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
