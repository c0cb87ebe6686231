import subprocess
import sys

import pytest

from sparklog.records.arrow.arrow_payload import ArrowPayload
from sparklog.records.envelope import ARROW_BIT, build_envelope, parse_header
from sparklog.records.kafka.kafka_payload import KafkaRecords
from sparklog.records.payload import kind_of, payload, payload_of
from sparklog.records.payload_kinds import SUPPORTED_PAYLOADS, PayloadKind, capability, takes_arrow


def header(attributes: int):
    return parse_header(
        build_envelope(
            b"",
            attributes=attributes,
            record_count=0,
            last_offset_delta=0,
            base_timestamp_ms=0,
            max_timestamp_ms=0,
        )
    )


@pytest.mark.parametrize(
    ("attributes", "kind", "code"),
    [(0, PayloadKind.RECORDS, KafkaRecords), (ARROW_BIT, PayloadKind.ARROW, ArrowPayload)],
)
def test_the_arrow_bit_tells_the_kind(attributes: int, kind: PayloadKind, code: type):
    assert kind_of(header(attributes)) is kind
    assert isinstance(payload_of(header(attributes)), code)
    assert payload(kind) is payload_of(header(attributes))


def test_capabilities_are_kind_and_version():
    assert SUPPORTED_PAYLOADS == (0x0002, 0x0101)
    assert takes_arrow(SUPPORTED_PAYLOADS)
    assert not takes_arrow(())
    assert not takes_arrow((capability(PayloadKind.RECORDS, 2), capability(PayloadKind.ARROW, 2)))


def test_every_kind_has_code():
    assert {type(payload(kind)) for kind in PayloadKind} == {KafkaRecords, ArrowPayload}


def test_reading_envelopes_imports_neither_arrow_nor_aiokafka():
    script = (
        "import sys, sparklog.records.envelope, sparklog.records.payload, sparklog.records.validate\n"
        "assert not {'pyarrow', 'aiokafka', 'numpy', 'cramjam'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
