"""``python -m fuzz``: requests of every API in every version, right, odd and damaged, to real brokers.

Exit status: 0 no rule was broken, 1 one was, 2 wrong usage, 130 Ctrl-C.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import count
from typing import Final

from fuzz.frames import PAIRS
from fuzz.play import Finding, Player
from fuzz.world import World
from sparklog.wire.versions import KNOWN_VERSIONS

FINDINGS_MAX: Final = 10
"""After so many findings a run ends: the next ones are likely the same."""

FRAME_BYTES_SHOWN: Final = 2_000
PROGRESS_S: Final = 30.0


def main(given: Sequence[str] | None = None) -> int:
    arguments = parsed(given)
    numbers = count(arguments.first)
    last = None if arguments.requests is None else arguments.first + arguments.requests
    began = told = time.monotonic()
    findings: list[Finding] = []
    with World().running() as world:
        player = Player(world, arguments.seed)
        for number in numbers:
            now = time.monotonic()
            is_over = now - began >= arguments.seconds if last is None else number >= last
            if is_over or len(findings) >= FINDINGS_MAX:
                break
            for finding in player.play(number):
                _tell(finding, arguments.seed, arguments.first, number)
                findings.append(finding)
            if now - told > PROGRESS_S:
                told = now
                print(f"{player.played} requests, {len(findings)} findings", file=sys.stderr)
        for finding in player.finish():
            _tell(finding, arguments.seed, arguments.first, arguments.first + player.played - 1)
            findings.append(finding)
    seconds = time.monotonic() - began
    apis = {api_key for api_key, _ in player.apis}
    print(
        f"seed {arguments.seed}: {player.played:,} requests of {len(apis)} of {len(KNOWN_VERSIONS)} APIs in "
        f"{len(player.apis)} of {len(PAIRS)} versions, {player.answered:,} answered, "
        f"{player.played / seconds:.0f} requests/s, {len(findings)} finding{'' if len(findings) == 1 else 's'}"
    )
    return 1 if findings else 0


def _tell(finding: Finding, seed: int, first: int, played: int) -> None:
    """The finding, its frame, and how to see it again."""
    request = finding.request
    print(f"{'(no request)' if request is None else request.name}: {finding.what}")
    if request is None:
        return
    frame = request.octets.hex()
    if len(frame) > 2 * FRAME_BYTES_SHOWN:
        frame = f"{frame[: 2 * FRAME_BYTES_SHOWN]}... ({len(request.octets):,} bytes)"
    print(f"  request {request.number} of seed {seed}: {frame}")
    print(f"  alone:           python -m fuzz --seed {seed} --first {request.number} --requests 1")
    print(f"  with all before: python -m fuzz --seed {seed} --first {first} --requests {played - first + 1}")
    sys.stdout.flush()


def parsed(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=_natural, default=0, metavar="N", help="what the requests are drawn from")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=_natural, default=60, metavar="N", help="how long (default: 60)")
    length.add_argument("--requests", type=_natural, metavar="N", help="how many, instead of how long")
    parser.add_argument(
        "--first", type=_natural, default=0, metavar="N", help="the number of the first request (default: 0)"
    )
    return parser.parse_args(given)


def _natural(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


if __name__ == "__main__":
    try:
        status = main()
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)
