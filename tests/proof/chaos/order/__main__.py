"""The table: each kind of strike, with the bugs and without."""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from chaos.bugs import OF_ORDER
from chaos.order.brokers import Brokers
from chaos.order.rounds import Round, kill, pause, prepare

STRIKES: Final[dict[str, Callable[[Brokers, int], Round]]] = {"kill": kill, "pause": pause}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos.order")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--pauses", type=int, default=5)
    parser.add_argument("--session", type=float, default=8.0, help="of brokers, in seconds")
    parser.add_argument("--after", action="store_true", help="only without the bugs")
    given = parser.parse_args()
    counts = {"kill": given.kills, "pause": given.pauses}
    is_clean = True
    for bugs in ((),) if given.after else (tuple(OF_ORDER), ()):
        with tempfile.TemporaryDirectory(prefix="order-") as folder:
            session_ms = round(1_000 * given.session)
            with Brokers(Path(folder), session_ms=session_ms, bugs=bugs) as brokers:
                prepare(brokers)
                for kind, strike in STRIKES.items():
                    rounds = [_told(strike(brokers, number)) for number in range(counts[kind])]
                    print(_line("with B86, B87" if bugs else "as shipped", kind, rounds), flush=True)
                    is_clean &= bool(bugs) or not any(one.findings for one in rounds)
    return 0 if is_clean else 1


def _told(one: Round) -> Round:
    gaps = ", ".join(f"{topic} {gap:.2f} s" for topic, gap in one.coordinators.items())
    print(f"  {one.strike}: {one.out_of_order} of {one.judged} out of order; {gaps}", flush=True)
    for finding in one.findings[:3]:
        print(f"    {finding}", flush=True)
    return one


def _line(how: str, kind: str, rounds: list[Round]) -> str:
    gaps: dict[str, list[float]] = {}
    for one in rounds:
        for topic, gap in one.coordinators.items():
            gaps.setdefault(topic, []).append(gap)
    worst = "; ".join(f"{topic} {max(of):.2f} s" for topic, of in gaps.items())
    disordered = [one.out_of_order for one in rounds]
    acknowledged = max((one.gap_s for one in rounds), default=0.0)
    return (
        f"{how}, {len(rounds)} of {kind}: out of order {disordered}; worst gap of plain producers "
        f"{acknowledged:.2f} s; of coordinators: {worst or 'none struck'}"
    )


if __name__ == "__main__":
    sys.exit(main())
