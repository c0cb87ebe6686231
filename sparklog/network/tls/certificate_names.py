"""The name of a certificate's owner as Java writes it, because rules for principals are written for Java.

``javax.security.auth.x500.X500Principal.getName()`` has RFC 2253's form: the last part first, parts that RFC
2253 names by their names, the others as ``OID=#HEX`` of the encoded value, and nine characters escaped. The
bytes are read here as they are encoded (DER), because libraries that decode values lose what Java shows.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_LONG: Final = 0x80
_LENGTH_BYTES_MAX: Final = 4
_FIELDS_BEFORE_SUBJECT: Final = 4
"""Serial number, algorithm, issuer and validity."""

_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXTS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""Tags of values that Java takes for UTF-8: UTF8, printable, Teletex, IA5, general and BMP strings."""

_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANKS: Final = " \r"


class _Element(NamedTuple):
    tag: int
    content: bytes
    whole: bytes


def subject_of(certificate: bytes) -> str:
    """The owner's name in a certificate (DER). ValueError if it is none, or has a text that is not UTF-8."""
    fields = list(_elements(_only(_elements(_only(_elements(certificate)).content), first=True).content))
    at = _FIELDS_BEFORE_SUBJECT + (fields[:1] != [] and fields[0].tag == _VERSION)
    if len(fields) <= at or fields[at].tag != _SEQUENCE:
        raise ValueError("a certificate without the name of its owner")
    parts = ("+".join(map(_attribute, _elements(part.content))) for part in _elements(fields[at].content))
    return ",".join(reversed(list(parts)))


def _elements(data: bytes) -> Iterator[_Element]:
    at = 0
    while at < len(data):
        start = at
        if at + 2 > len(data):
            raise ValueError("a certificate that is cut")
        tag, length = data[at], data[at + 1]
        at += 2
        if length >= _LONG:
            count = length - _LONG
            if not 0 < count <= _LENGTH_BYTES_MAX:
                raise ValueError("a certificate that is not DER")
            length = int.from_bytes(data[at : at + count], "big")
            at += count
        if at + length > len(data):
            raise ValueError("a certificate that is cut")
        yield _Element(tag, data[at : at + length], data[start : at + length])
        at += length


def _only(elements: Iterator[_Element], *, first: bool = False) -> _Element:
    found = list(elements)
    if not found or (len(found) > 1 and not first) or found[0].tag != _SEQUENCE:
        raise ValueError("a certificate that is not DER")
    return found[0]


def _attribute(element: _Element) -> str:
    fields = list(_elements(element.content))
    if len(fields) != 2:  # its kind and its value
        raise ValueError("a certificate whose owner's name is not DER")
    kind, value = fields
    oid = _dotted(kind.content)
    if oid not in _NAMES or value.tag not in _TEXTS:
        return f"{_NAMES.get(oid, oid)}=#{value.whole.hex()}"
    try:
        return f"{_NAMES[oid]}={_escaped(value.content.decode())}"
    except UnicodeDecodeError:
        raise ValueError(f"a certificate whose owner's {_NAMES[oid]} is not UTF-8") from None


def _dotted(content: bytes) -> str:
    numbers: list[int] = []
    value = 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    if not numbers:
        raise ValueError("a certificate whose owner's name is not DER")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _escaped(text: str) -> str:
    escaped = "".join(f"\\{one}" if one in _ESCAPED else "\\00" if one == "\0" else one for one in text)
    inner = escaped.strip(_BLANKS)
    lead = len(escaped) - len(escaped.lstrip(_BLANKS)) if inner else len(escaped)
    trail = len(escaped) - lead - len(inner)
    at_front, at_end = escaped[:lead], escaped[len(escaped) - trail :]
    return "".join(f"\\{one}" for one in at_front) + inner + "".join(f"\\{one}" for one in at_end)
