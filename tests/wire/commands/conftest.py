"""Responses through the codec and back."""

import pytest

from sparklog.model.parts import read_parts
from sparklog.wire.codec import decode_response, encode_response
from sparklog.wire.versions import KNOWN_VERSIONS


@pytest.fixture
def answered():
    """A response as the requester reads it, in the greatest version or a given one."""

    def answer(message, version=None):
        version = KNOWN_VERSIONS[message.API_KEY].max if version is None else version
        frame = read_parts(encode_response(message, version, 1))[4:]
        return decode_response(type(message), version, frame)[1]

    return answer
