"""The second codec: it agrees with the shipped one, and refuses what is no message."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.layout import LayoutError, Written, read_tree, write_tree
from fuzz.surroundings import Surroundings
from fuzz.values import Drawer
from sparklog.model.parts import read_parts
from sparklog.wire.codec import decode_body, encode_body, message_class
from sparklog.wire.schema import load_schema
from sparklog.wire.versions import KNOWN_VERSIONS

PAIRS = [(key, version) for key, api in KNOWN_VERSIONS.items() for version in range(api.min, api.max + 1)]


@pytest.mark.parametrize(("api_key", "version"), PAIRS)
@settings(max_examples=10)
@given(dice=st.randoms(use_true_random=False))
def test_it_writes_what_the_shipped_codec_reads_and_writes_again(api_key, version, dice):
    schema = load_schema(api_key, version, "request")
    tree = Drawer(dice, api_key, Surroundings({}), oddity=0.0).tree(schema)
    written = Written()
    write_tree(schema, tree, written)
    octets = bytes(written.octets)
    message = decode_body(message_class(api_key, "request"), version, octets)
    again = read_parts(encode_body(dataclasses.replace(message), version))
    assert read_tree(schema, octets).keys() >= read_tree(schema, bytes(again)).keys()
    assert decode_body(message_class(api_key, "request"), version, bytes(again)) == message


LIST_OFFSETS = load_schema(2, 1, "response")


@pytest.mark.parametrize(
    ("octets", "reason"),
    [
        ("00000001 0001 74 00000000 00", "1 bytes behind the body"),
        ("ffffffff", "topics has length -1"),
        ("00000001 ffff 00000000", "name has length -1"),
        ("00000001 0002 c328 00000000", "name is no UTF-8"),
        ("00000001 0009 74", "name needs 9 bytes, and 1 are left"),
    ],
)
def test_what_is_no_message_of_the_schema_is_refused_with_the_reason(octets, reason):
    frame = bytes.fromhex(octets)
    with pytest.raises(LayoutError, match=reason):
        read_tree(LIST_OFFSETS, frame)


def test_tags_must_grow_and_have_the_length_that_they_announce():
    api_versions = load_schema(18, 3, "response")
    body = bytes.fromhex("0000 01 00000000")
    for tags, reason in [
        ("02 01 08 0000000000000001 01 08 0000000000000001", "tag 1 follows tag 1"),
        ("01 01 07 0000000000000001", "tag 1 ends"),
        ("01 7f 09 00", "tag 127 needs 9 bytes"),
    ]:
        with pytest.raises(LayoutError, match=reason):
            read_tree(api_versions, body + bytes.fromhex(tags))
