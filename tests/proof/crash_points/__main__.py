"""Every crash point of shipped storage, as a table.

Exit status: 0 no promise was broken, 1 one was, 2 wrong usage, 3 this machine does not allow it.
"""

import argparse
import logging
import sys
import time
from collections.abc import Iterable, Sequence

from crash_points.explore import Effort, Explorer, Report, Row
from crash_points.scenarios import SCENARIOS
from crash_points.tracer import CannotTrace

NAMES = [scenario.name for scenario in SCENARIOS]
HEAD = (
    "| operation | points | SIGKILL before a call | SIGKILL inside a write | states after a power cut "
    "| SIGKILL in the recovery | states after a power cut in the recovery | children really killed |"
)


def main() -> int:
    arguments = parsed()
    logging.getLogger("sparklog").setLevel(logging.CRITICAL)  # thousands of starts, each with its warnings
    effort = Effort(
        every=arguments.every,
        first=arguments.first,
        really_every=arguments.kill_every,
        states_max=arguments.states,
        recoveries_max=arguments.recoveries,
        in_recovery=arguments.recoveries > 0,
    )
    report = Report()
    explorer = Explorer(report, effort)
    try:
        for scenario in SCENARIOS:
            if not arguments.only or scenario.name in arguments.only:
                began = time.monotonic()
                explorer.explore(scenario)
                seconds = time.monotonic() - began
                print(f"{scenario.name}: {seconds:.0f} s, {len(report.troubles)} findings", file=sys.stderr)
    except CannotTrace as reason:
        print(f"NOT RUN: {reason}")
        return 3
    finally:
        explorer.close()
    print("\n".join(table(report.rows.items())))
    print(f"\n{len(report.troubles)} findings")
    for trouble in report.troubles[: arguments.findings]:
        print(f"- {trouble[:1_000]}")
    return 1 if report.troubles else 0


def parsed(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m crash_points",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"scenarios: {', '.join(NAMES)}",
    )
    parser.add_argument(
        "--only", action="append", choices=NAMES, metavar="SCENARIO", help="this one only, or these"
    )
    parser.add_argument("--every", type=_positive, default=1, metavar="N", help="only every N-th point")
    parser.add_argument(
        "--first", type=int, default=0, metavar="K", help="of those the K-th, K+N-th, …; less than N"
    )
    parser.add_argument(
        "--kill-every", type=_positive, default=1, metavar="N", help="really kill a child at every N-th point"
    )
    parser.add_argument(
        "--states", type=_positive, default=60, metavar="N", help="after a power cut, of each point"
    )
    parser.add_argument(
        "--recoveries", type=int, default=200, metavar="N", help="recoveries to interrupt, of each scenario"
    )
    parser.add_argument("--findings", type=_positive, default=40, metavar="N", help="how many to print")
    arguments = parser.parse_args(given)
    if not 0 <= arguments.first < arguments.every:
        parser.error(f"--first is {arguments.first}, not from 0 to {arguments.every - 1} (--every)")
    if arguments.recoveries < 0:
        parser.error(f"--recoveries is {arguments.recoveries}, less than 0")
    return arguments


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def table(rows: Iterable[tuple[str, Row]]) -> list[str]:
    lines = [HEAD, "|---|" + "---:|" * 7]
    total = Row()
    for name, row in rows:
        lines.append(_line(name, row))
        total.add(row)
    return [*lines, _line("all", total)]


def _line(name: str, row: Row) -> str:
    counts = (
        row.points,
        row.kills,
        row.torn,
        row.states,
        row.kills_in_recovery,
        row.states_in_recovery,
        row.real_kills,
    )
    return f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + " |"


if __name__ == "__main__":
    sys.exit(main())
