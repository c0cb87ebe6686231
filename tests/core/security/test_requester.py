"""Who a forwarded request is for, as the controller reads it."""

import pytest

from sparklog.core.security.requester import (
    ADDRESS_BYTES_MAX,
    ANONYMOUS,
    PRINCIPAL_BYTES_MAX,
    Requester,
    decode_requester,
)
from sparklog.model.errors import WireError


@pytest.mark.parametrize("address", ["127.0.0.1", "fe80::1%eth0", "broker-1.example"])
@pytest.mark.parametrize("principal", [ANONYMOUS, "User:CN=alice,O=Some Company", "User:søren"])
def test_a_principal_and_an_address_are_read_as_they_were_sent(principal, address):
    requester = decode_requester(memoryview(principal.encode()), address.encode())
    assert requester == Requester(principal, address)
    assert str(requester) == f"{principal} at {address}"


@pytest.mark.parametrize(
    ("principal", "address", "named"),
    [
        (None, b"127.0.0.1", "no principal"),
        (b"", b"127.0.0.1", "principal is malformed"),
        (b"alice", b"127.0.0.1", "principal is malformed"),
        (b"User:", b"127.0.0.1", "principal is malformed"),
        (b"User:a\nERROR all is lost", b"127.0.0.1", "principal is malformed"),
        (b"User:\xff", b"127.0.0.1", "principal is not UTF-8"),
        (b"User:" + b"a" * PRINCIPAL_BYTES_MAX, b"127.0.0.1", f"at most {PRINCIPAL_BYTES_MAX}"),
        (b"User:alice", b"", "client address is malformed"),
        (b"User:alice", b"127.0.0.1 or so", "client address is malformed"),
        (b"User:alice", b"1" * (ADDRESS_BYTES_MAX + 1), f"at most {ADDRESS_BYTES_MAX}"),
    ],
)
def test_what_is_no_requester_is_refused(principal, address, named):
    with pytest.raises(WireError, match=named):
        decode_requester(principal, address)
