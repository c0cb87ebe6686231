"""``python -m fuzz``: requests of every API in every version, right, odd and damaged, to real brokers.

Exit status: 0 no rule was broken, 1 one was, 2 wrong usage, 130 Ctrl-C.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
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
    began = time.monotonic()
    findings = 0
    with World().running() as world, Player(world, arguments.seed) as player:
        for finding in _found(player, arguments):
            _tell(finding, arguments, player.played)
            findings += 1
            if findings == FINDINGS_MAX:
                print(f"{FINDINGS_MAX} findings are enough", file=sys.stderr)
                break
    seconds = time.monotonic() - began
    apis = {api_key for api_key, _ in player.apis}
    print(
        f"seed {arguments.seed}: {player.played:,} requests of {len(apis)} of {len(KNOWN_VERSIONS)} APIs in "
        f"{len(player.apis)} of {len(PAIRS)} versions, {player.answered:,} answered, "
        f"{player.played / seconds:.0f} requests/s, {findings} finding{'' if findings == 1 else 's'}"
    )
    return 1 if findings else 0


def _found(player: Player, arguments: argparse.Namespace) -> Iterator[Finding]:
    """Play as many requests as the arguments say; yields what is found."""
    began = told = time.monotonic()
    for number in count(arguments.first):
        now = time.monotonic()
        if arguments.requests is None:
            is_over = now - began >= arguments.seconds
        else:
            is_over = player.played >= arguments.requests
        if is_over:
            break
        yield from player.play(number)
        if now - told > PROGRESS_S:
            told = now
            print(f"{player.played:,} requests", file=sys.stderr)
    yield from player.finish()


def _tell(finding: Finding, arguments: argparse.Namespace, played: int) -> None:
    """Print the finding, its frame, and how to see it again."""
    request = finding.request
    print(f"{'(no request)' if request is None else request.name}: {finding.what}")
    if request is None:
        return
    frame = request.octets.hex()
    if len(frame) > 2 * FRAME_BYTES_SHOWN:
        frame = f"{frame[: 2 * FRAME_BYTES_SHOWN]}... ({len(request.octets):,} bytes)"
    again = f"python -m fuzz --seed {arguments.seed}"
    print(f"  request {request.number} of seed {arguments.seed}: {frame}")
    print(f"  alone:           {again} --first {request.number} --requests 1")
    print(f"  with all before: {again} --first {arguments.first} --requests {played}", flush=True)


def parsed(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--seed", type=_natural, default=0, metavar="N", help="what the requests are drawn from"
    )
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
