"""Names of owners become texts as Java writes them: the table of expected texts is from Java 17."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparklog.network.tls.certificate_names import subject_of

OIDS = {
    "CN": "550403", "C": "550406", "L": "550407", "ST": "550408", "STREET": "550409", "O": "55040a",
    "OU": "55040b", "UID": "0992268993f22c640101", "DC": "0992268993f22c640119",
    "emailAddress": "2a864886f70d010901", "serialNumber": "550405", "title": "55040c", "givenName": "55042a",
    "private": "2b060104018237",
}  # fmt: skip
UTF8, PRINTABLE, TELETEX, IA5, BMP, NUMERIC, INTEGER = 0x0C, 0x13, 0x14, 0x16, 0x1E, 0x12, 0x02

Part = tuple[str, int, bytes]
"""An attribute's kind, the tag of its value, and the value."""


def element(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 + len(size)]) + size + content


def name(*parts: list[Part]) -> bytes:
    """Each part may have several attributes."""
    sets = b"".join(
        element(0x31, b"".join(element(0x30, element(6, bytes.fromhex(OIDS[kind])) + element(tag, value))
                               for kind, tag, value in part))
        for part in parts
    )  # fmt: skip
    return element(0x30, sets)


def certificate(subject: bytes) -> bytes:
    """As much of a certificate as has its owner's name."""
    empty = element(0x30, b"")
    fields = element(0xA0, element(2, b"\2")) + element(2, b"\1") + empty + name() + empty + subject
    return element(0x30, element(0x30, fields + empty) + empty + element(3, b"\0"))


NAMES: dict[str, bytes] = {
    "one": name([("CN", UTF8, b"alice")]),
    "the last part first": name(
        [("C", PRINTABLE, b"DE")], [("O", UTF8, b"Example")], [("CN", UTF8, b"alice")]
    ),
    "every part that has a name": name(*([(kind, UTF8, b"x")] for kind in list(OIDS)[:9])),
    "parts without a name": name(*([(kind, UTF8, b"x y")] for kind in list(OIDS)[9:])),
    "an address": name([("CN", UTF8, b"alice")], [("emailAddress", IA5, b"a@b.c")]),
    "several in a part": name([("CN", UTF8, b"alice"), ("UID", UTF8, b"7"), ("OU", UTF8, b"b")]),
    "characters that are escaped": name([("CN", UTF8, b'a,b+c"d\\e<f>g;h=i#j/k')]),
    "a sign at the front": name([("CN", UTF8, b"#a#b")]),
    "blanks at both ends": name([("CN", UTF8, b"  a b  ")]),
    "blanks alone": name([("CN", UTF8, b"   ")]),
    "a carriage return at the end": name([("CN", UTF8, b"a\r")]),
    "a zero byte": name([("CN", UTF8, b"a\0b")]),
    "a tab and a line feed": name([("CN", UTF8, b"\ta\nb")]),
    "nothing in a part": name([("CN", UTF8, b"")]),
    "umlauts": name([("O", UTF8, "Müller ✓ 𝄞".encode())]),
    "a comma and a blank": name([("O", UTF8, b"Example, Inc. ")]),
    "printable": name([("CN", PRINTABLE, b"(a)'?:")]),
    "Teletex": name([("CN", TELETEX, b"alice")]),
    "IA5": name([("DC", IA5, b"example")], [("DC", IA5, b"org")]),
    "BMP": name([("CN", BMP, "ab".encode("utf-16-be"))]),
    "digits": name([("CN", NUMERIC, b"12")]),
    "a number": name([("CN", INTEGER, b"\7")]),
    "a long value": name([("CN", UTF8, b"a" * 300)]),
    "nobody": name(),
}

AS_JAVA_WRITES_THEM = {
    "one": "CN=alice",
    "the last part first": "CN=alice,O=Example,C=DE",
    "every part that has a name": "DC=x,UID=x,OU=x,O=x,STREET=x,ST=x,L=x,C=x,CN=x",
    "parts without a name": "1.3.6.1.4.1.311=#0c03782079,2.5.4.42=#0c03782079,2.5.4.12=#0c03782079,"
    "2.5.4.5=#0c03782079,1.2.840.113549.1.9.1=#0c03782079",
    "an address": "1.2.840.113549.1.9.1=#16056140622e63,CN=alice",
    "several in a part": "CN=alice+UID=7+OU=b",
    "characters that are escaped": r"CN=a\,b\+c\"d\\e\<f\>g\;h\=i\#j/k",
    "a sign at the front": r"CN=\#a\#b",
    "blanks at both ends": r"CN=\ \ a b\ \ ",
    "blanks alone": r"CN=\ \ \ ",
    "a carriage return at the end": "CN=a\\\r",
    "a zero byte": r"CN=a\00b",
    "a tab and a line feed": "CN=\ta\nb",
    "nothing in a part": "CN=",
    "umlauts": "O=Müller ✓ 𝄞",
    "a comma and a blank": r"O=Example\, Inc.\ ",
    "printable": "CN=(a)'?:",
    "Teletex": "CN=alice",
    "IA5": "DC=org,DC=example",
    "BMP": r"CN=\00a\00b",
    "digits": "CN=#12023132",
    "a number": "CN=#020107",
    "a long value": "CN=" + "a" * 300,
    "nobody": "",
}


def test_each_name_has_its_text() -> None:
    assert NAMES.keys() == AS_JAVA_WRITES_THEM.keys()


@pytest.mark.parametrize("kind", NAMES)
def test_an_owners_name_is_written_as_java_writes_it(kind: str) -> None:
    assert subject_of(certificate(NAMES[kind])) == AS_JAVA_WRITES_THEM[kind]


def test_a_text_that_is_not_utf_8_is_refused_because_two_names_could_become_one() -> None:
    with pytest.raises(ValueError, match="whose owner's CN is not UTF-8"):
        subject_of(certificate(name([("CN", TELETEX, b"caf\xe9")])))


def test_a_certificate_that_is_cut_anywhere_is_refused() -> None:
    whole = certificate(NAMES["umlauts"])
    for end in range(len(whole)):
        with pytest.raises(ValueError, match="a certificate"):
            subject_of(whole[:end])


@given(st.binary(max_size=80))
def test_bytes_that_are_no_certificate_are_refused_and_nothing_else_happens(data: bytes) -> None:
    with pytest.raises(ValueError, match="certificate"):
        subject_of(data)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=4))
def test_no_two_owners_have_the_same_text(values: list[str]) -> None:
    text = subject_of(certificate(name(*([("CN", UTF8, value.encode())] for value in values))))
    plain = [""]
    for escape, comma, other in re.findall(r"\\(00|.)|(,)|([^\\,])", text, re.DOTALL):
        if comma:
            plain.append("")
        plain[-1] += {"00": "\0"}.get(escape, escape) + other
    assert plain == [f"CN={value}" for value in reversed(values)]
