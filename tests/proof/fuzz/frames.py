"""Frames from a seed and a number: a request of some API and version, right, odd or damaged.

Every pair of API and version has its turn before any has its second. The same seed and number draw the same
frame, up to topic ids and other values that the cluster gives out.
"""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fuzz.layout import LengthMark, Written, uvarint, write_tree
from fuzz.surroundings import Surroundings
from fuzz.values import Drawer
from sparklog.wire.schema import Schema, load_schema
from sparklog.wire.versions import KNOWN_VERSIONS

ODDITY: Final = 0.15
"""The share of odd fields in an odd request."""

CLIENT_ID: Final = b"fuzz"
ENVELOPE: Final = 58

FRAME_BYTES_MAX: Final = 1_000_000
"""Requests that grow beyond this are drawn again with ordinary values."""

PAIRS: Final = tuple(
    (api_key, version) for api_key, api in KNOWN_VERSIONS.items() for version in range(api.min, api.max + 1)
)
"""Every API in every version."""


@dataclass(frozen=True, slots=True)
class Request:
    """One frame, its size prefix included, and how it came about."""

    number: int
    api_key: int
    version: int
    correlation_id: int
    how: str
    """``right``, ``odd``, or the name of a damage."""
    octets: bytes

    @property
    def is_whole(self) -> bool:
        return self.how in ("right", "odd")

    @property
    def name(self) -> str:
        return f"{KNOWN_VERSIONS[self.api_key].name} {self.version}, {self.how}"


def draw_request(seed: int, number: int, surroundings: Surroundings) -> Request:
    """Request ``number``, from 0 on, of a seed."""
    dice = random.Random(f"{seed}/{number}")
    api_key, version = _pair(seed, number)
    how = dice.choices(("right", "odd", *DAMAGES), (20, 40, *(5 for _ in DAMAGES)))[0]
    correlation_id = dice.randrange(2**31)
    pen = _Pen(dice, surroundings, spares_kept=how == "crossed")
    written = pen.request(api_key, version, correlation_id, 0.0 if how == "right" else ODDITY)
    if len(written.octets) > FRAME_BYTES_MAX:
        written = pen.request(api_key, version, correlation_id, 0.0)
    octets = DAMAGES[how](dice, written) if how in DAMAGES else with_size(bytes(written.octets))
    return Request(number, api_key, version, correlation_id, how, octets)


def _pair(seed: int, number: int) -> tuple[int, int]:
    turn, place = divmod(number, len(PAIRS))
    order = list(PAIRS)
    random.Random(f"{seed}/turn {turn}").shuffle(order)
    return order[place]


@dataclass(frozen=True, slots=True)
class _Pen:
    """Draws and writes requests without size prefix."""

    dice: random.Random
    surroundings: Surroundings
    spares_kept: bool

    def request(self, api_key: int, version: int, correlation_id: int, oddity: float) -> Written:
        schema = load_schema(api_key, version, "request")
        drawer = Drawer(self.dice, api_key, self.surroundings, oddity=oddity, spares_kept=self.spares_kept)
        tree = drawer.tree(schema)
        if "request_data" in tree:
            tree["request_data"] = self._inside_envelope()
        written = Written()
        written.octets += struct.pack(">hhi", api_key, version, correlation_id)
        written.lengths.append(LengthMark(len(written.octets), 2))
        written.octets += struct.pack(">h", len(CLIENT_ID)) + CLIENT_ID
        if schema.flexible:
            written.octets += uvarint(0)
        write_tree(schema, tree, written)
        return written

    def _inside_envelope(self) -> bytes:
        """A request without size; damage to the envelope may change its API, so it names nothing kept."""
        api_key, version = self.dice.choice([pair for pair in PAIRS if pair[0] != ENVELOPE])
        pen = _Pen(self.dice, self.surroundings, spares_kept=True)
        return bytes(pen.request(api_key, version, self.dice.randrange(2**31), ODDITY).octets)


def with_size(octets: bytes) -> bytes:
    return struct.pack(">i", len(octets)) + octets


# Damages: of a request without its size prefix to a frame with one

Damage = Callable[[random.Random, Written], bytes]


def _cut(dice: random.Random, written: Written) -> bytes:
    """A frame that ends too early, and whose size says so."""
    return with_size(bytes(written.octets[: dice.randrange(len(written.octets))]))


def _left(dice: random.Random, written: Written) -> bytes:
    """A frame of which only a part is ever sent."""
    whole = with_size(bytes(written.octets))
    return whole[: dice.randrange(1, len(whole))]


def _flipped(dice: random.Random, written: Written) -> bytes:
    octets = bytearray(written.octets)
    for _ in range(dice.choice((1, 1, 2, 8))):
        octets[dice.randrange(_AFTER_API, len(octets))] ^= 1 << dice.randrange(8)
    return with_size(bytes(octets))


def _inflated(dice: random.Random, written: Written) -> bytes:
    """A length, or the size of the frame, says much more than there is, or less than nothing."""
    octets = bytearray(written.octets)
    if dice.random() < 0.1:
        size = dice.choice((-1, -(2**31), 2**31 - 1, 100 * 1024 * 1024, 104_857_601))
        return struct.pack(">i", size) + octets
    mark = dice.choice(written.lengths)
    if mark.width == 0:
        new = dice.choice((uvarint(2**31 - 1), uvarint(2**32 - 1), uvarint(1_000_001), b"\xff" * 6))
        octets[mark.position : mark.position + 1] = new
    else:
        most = 2 ** (8 * mark.width - 1)
        new_length = dice.choice((-2, -most, most - 1, *(min(most - 1, n) for n in (1_000_001, len(octets)))))
        octets[mark.position : mark.position + mark.width] = new_length.to_bytes(
            mark.width, "big", signed=True
        )
    return with_size(bytes(octets))


def _padded(dice: random.Random, written: Written) -> bytes:
    """Bytes behind the body, which Kafka ignores."""
    return with_size(bytes(written.octets) + dice.randbytes(dice.choice((1, 4, 1_000))))


def _crossed(dice: random.Random, written: Written) -> bytes:
    """The body under the header of another API or version, known or not."""
    octets = bytearray(written.octets)
    if dice.random() < 0.5:
        api_key, version = dice.choice(PAIRS)
    else:
        api_key = dice.choice((dice.choice(PAIRS)[0], -1, 99, 2**15 - 1, -(2**15)))
        version = dice.choice((-1, 0, 16, 2**15 - 1, -(2**15)))
    struct.pack_into(">hh", octets, 0, api_key, version)
    return with_size(bytes(octets))


def _noise(dice: random.Random, written: Written) -> bytes:
    return with_size(bytes(written.octets[:_AFTER_API]) + dice.randbytes(dice.choice((0, 6, 40, 3_000))))


_AFTER_API: Final = 4

DAMAGES: Final[dict[str, Damage]] = {
    "cut": _cut,
    "left": _left,
    "flipped": _flipped,
    "inflated": _inflated,
    "padded": _padded,
    "crossed": _crossed,
    "noise": _noise,
}


def schema_of(api_key: int, version: int) -> Schema | None:
    """The schema of a request, or None if this version is not known."""
    api = KNOWN_VERSIONS.get(api_key)
    return load_schema(api_key, version, "request") if api is not None and version in api else None
