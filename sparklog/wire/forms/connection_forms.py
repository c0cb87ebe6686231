"""What the requests of one connection look like: a known header, or a whole known form, is not read again."""

from typing import Final

from sparklog.wire.codec import CORRELATION_ID_AT, HeaderForm, Request, decode_request
from sparklog.wire.forms.produce_form import ProduceForm, Shape, shape_of
from sparklog.wire.messages.data.produce import ProduceRequest

REPEATS_MIN: Final = 3
"""So many requests of one shape follow each other before their form is made: that costs some time."""

HEADER_BYTES_MAX: Final = 256
"""Longer headers are read each time: a connection keeps one for each API that it asks."""

HEADERS_MAX: Final = 24
"""Headers of further APIs and versions are read each time: no client asks for so many."""


class ConnectionForms:
    """One connection's; its requests are decoded one after another."""

    __slots__ = ("_form", "_headers", "_repeats", "_shape")

    def __init__(self) -> None:
        self._headers: dict[bytes, HeaderForm] = {}
        """The last header by API and version."""
        self._form: ProduceForm | None = None
        """That of the last produces."""
        self._shape: Shape | None = None
        """That of the last produce which was decoded."""
        self._repeats = 0
        """How many decoded produces had it, one after another."""

    def decode(self, frame: memoryview) -> tuple[Request, ProduceForm | None]:
        """As ``codec.decode_request``, and the form by which the request was read, if it was."""
        form = self._form
        if form is not None:
            request = form.read(frame)
            if request is not None:
                return request, form
        request = self._decode(frame)
        if request.header.api_key == ProduceRequest.API_KEY:
            self._learn(frame, request)
        return request, None

    def _decode(self, frame: memoryview) -> Request:
        """By the schema, but for the header."""
        header = self._headers.get(bytes(frame[:CORRELATION_ID_AT]))
        request = None if header is None else header.decode(frame)
        if request is None:
            request = decode_request(frame)
            self._keep(HeaderForm(frame))
        return request

    def _keep(self, header: HeaderForm) -> None:
        headers = self._headers
        if header.size_bytes <= HEADER_BYTES_MAX and (len(headers) < HEADERS_MAX or header.api in headers):
            headers[header.api] = header

    def _learn(self, frame: memoryview, request: Request) -> None:
        shape = shape_of(request, len(frame))
        if shape is None or shape != self._shape:
            self._shape, self._repeats = shape, 1
            return
        self._repeats += 1
        if self._repeats == REPEATS_MIN:
            self._form = ProduceForm.of(frame, shape)
