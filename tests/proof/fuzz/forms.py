"""``python -m fuzz.forms``: each frame is decoded by its connection's form and by its schema.

A case is one connection that has a form. It gets frames of that form, of other forms, and damaged ones, and
for each both ways must give the same request, or the same refusal. What a form answers must be what the
codec writes, to the last byte. A rule that is broken raises ``AssertionError``.
"""

import argparse
import random
import sys
import time
from dataclasses import replace
from itertools import count
from typing import Any, Final

from fuzz.frames import DAMAGES
from fuzz.layout import LengthMark, Written
from fuzz.records import draw_records
from sparklog.model.errors import WireError
from sparklog.model.parts import read_parts
from sparklog.wire.codec import Request, decode_request, encode_request, encode_response
from sparklog.wire.forms.connection_forms import REPEATS_MIN, ConnectionForms
from sparklog.wire.forms.produce_form import AnswerForm
from sparklog.wire.framing import FRAME_PREFIX
from sparklog.wire.messages.data.produce import (
    ProducePartition,
    ProducePartitionResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResponse,
)
from sparklog.wire.versions import KNOWN_VERSIONS

FRAMES_MAX: Final = 24
NUMBERS: Final = (0, 1, -1, 2**31 - 1, -(2**31))
OFFSETS: Final = (0, 1, -1, 2**63 - 1, -(2**63))
LENGTHS: Final = (0, 1, 60, 126, 127, 128)
"""Lengths of batches, on both sides of where a varint gets another byte."""
LONG_LENGTHS: Final = (16_382, 16_383, 16_384, 2_097_150, 2_097_151, 2_097_152)
LONG_ONES: Final = 100
"""One batch in so many is long."""


class Case:
    """One connection, and what was seen of it."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.forms = ConnectionForms()
        self.version = dice.randint(0, KNOWN_VERSIONS[ProduceRequest.API_KEY].max)
        self.client_id = dice.choice((None, "", "rdkafka", "x" * 300))
        self.request = self._new_request()
        self.by_form = self.by_schema = self.refused = 0

    def play(self) -> None:
        for _ in range(REPEATS_MIN):
            self.look_at(self.frame())
        for _ in range(self.dice.randint(1, FRAMES_MAX)):
            self.step()

    def step(self) -> None:
        kind = self.dice.choices(("same", "damaged", "other", "touched"), (8, 4, 1, 4))[0]
        if kind == "other":
            self.request = self._new_request()
        frame = self.frame()
        if kind == "damaged":
            frame = self.damaged(frame)
        elif kind == "touched":
            frame = self.touched(frame)
        self.look_at(frame)

    def look_at(self, octets: bytes) -> None:
        """Decode a frame both ways."""
        wanted = _or_refusal(lambda: decode_request(memoryview(bytearray(octets))))
        form = None

        def by_form() -> Request:
            nonlocal form
            request, form = self.forms.decode(memoryview(bytearray(octets)))
            return request

        found = _or_refusal(by_form)
        assert found == wanted, f"{octets.hex()}: {found} by its form, {wanted} by its schema"
        if form is not None:
            assert isinstance(wanted, Request)
            self.by_form += 1
            self.answer(form.answer, wanted)
        elif isinstance(wanted, Request):
            self.by_schema += 1
        else:
            self.refused += 1

    def answer(self, form: AnswerForm, request: Request) -> None:
        """Write the answer both ways."""
        (topic,) = request.body.topic_data
        base, stamp, start = (self.dice.choice((*OFFSETS, self.dice.randrange(2**40))) for _ in range(3))
        throttle_ms = self.dice.choice((0, 0, 1_000, 2**31 - 1))
        partition = ProducePartitionResponse(
            index=topic.partition_data[0].index,
            base_offset=base,
            log_append_time_ms=stamp,
            log_start_offset=start,
        )
        response = ProduceResponse(
            responses=[ProduceTopicResponse(name=topic.name, partition_responses=[partition])],
            throttle_time_ms=throttle_ms,
        )
        header = request.header
        wanted = read_parts(encode_response(response, header.api_version, header.correlation_id))
        found = form.write(header.correlation_id, partition.index, base, stamp, start, throttle_ms)
        assert found == wanted, (
            f"the answer to {request}: {found.hex()} by its form, {wanted.hex()} by its schema"
        )

    def frame(self) -> bytes:
        """The next request, with a partition and a batch of its own."""
        dice = self.dice
        body = self.request
        for topic in body.topic_data:
            for data in topic.partition_data:
                data.index = dice.choice((*NUMBERS, dice.randrange(100)))
                data.records = None if dice.random() < 0.03 else self.batch()
        octets = encode_request(body, self.version, dice.randrange(-(2**31), 2**31), self.client_id)
        return octets[FRAME_PREFIX.size :]

    def batch(self) -> bytes:
        if self.dice.random() < 0.5:
            return draw_records(self.dice, is_odd=self.dice.random() < 0.3)
        lengths = LENGTHS if self.dice.randrange(LONG_ONES) else LONG_LENGTHS
        return self.dice.randbytes(self.dice.choice(lengths))

    def damaged(self, frame: bytes) -> bytes:
        written = Written()
        written.octets += frame
        at = self.dice.randrange(len(frame))
        written.lengths.append(LengthMark(at, 0 if self.dice.random() < 0.5 else min(4, len(frame) - at)))
        damage = self.dice.choice([one for name, one in DAMAGES.items() if name != "left"])
        return damage(self.dice, written)[FRAME_PREFIX.size :]

    def touched(self, frame: bytes) -> bytes:
        """Some bits flipped near the beginning or the end, where a form must compare."""
        touched, dice = bytearray(frame), self.dice
        for _ in range(dice.choice((1, 1, 2))):
            at = dice.choice((1, -1)) * dice.randrange(1, min(90, len(frame)))
            touched[at] ^= 1 << dice.randrange(8)
        return bytes(touched)

    def _new_request(self) -> ProduceRequest:
        dice = self.dice
        topics = [self._new_topic() for _ in range(dice.choices((0, 1, 2), (1, 20, 2))[0])]
        request = ProduceRequest(
            acks=dice.choice((-1, 0, 1, 7)),
            timeout_ms=dice.choice((30_000, *NUMBERS)),
            topic_data=topics,
        )
        if self.version >= 3 and dice.random() < 0.3:
            request = replace(request, transactional_id=dice.choice(("", "t", "x" * 200)))
        if KNOWN_VERSIONS[ProduceRequest.API_KEY].is_flexible(self.version) and dice.random() < 0.3:
            request = replace(request, payload_kinds=dice.choice(((256,), (256, 257))))
        return request

    def _new_topic(self) -> ProduceTopic:
        name = self.dice.choice(("quakes", "", "é", "x" * 249, "x" * 250))
        partitions = self.dice.choices((0, 1, 2), (1, 20, 2))[0]
        return ProduceTopic(name=name, partition_data=[ProducePartition(index=0) for _ in range(partitions)])


def _or_refusal(decode: Any) -> Any:
    try:
        return decode()
    except WireError as error:
        return type(error), str(error)


def play(seed: int, number: int) -> Case:
    """Play one case; returns what was seen of it."""
    case = Case(random.Random(f"{seed}/{number}"))
    case.play()
    return case


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.forms", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=60)
    arguments = parser.parse_args()
    end, by_form = time.monotonic() + arguments.seconds, 0
    for number in count():
        if time.monotonic() >= end:
            break
        try:
            by_form += play(arguments.seed, number).by_form
        except Exception:
            print(f"case {number} of seed {arguments.seed}", file=sys.stderr)
            raise
    print(
        f"seed {arguments.seed}: {number:,} connections, {by_form:,} requests by their form, "
        "no rule was broken"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
