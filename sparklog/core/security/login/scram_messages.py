"""The four messages of SCRAM (RFC 5802 §7) as text and back. What is malformed raises ``MalformedMessage``.

    client first    n,,n=user,r=NONCE             or n,a=authorization id,n=user,r=NONCE
    server first    r=NONCE+MORE,s=SALT,i=ITERATIONS
    client final    c=biws,r=NONCE+MORE,p=PROOF   c: what stood before the user, in base64
    server final    v=SIGNATURE                   or e=an error

In a name ``=2C`` stands for a comma and ``=3D`` for an equals sign. Extensions after these are passed over.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final

MESSAGE_BYTES_MAX: Final = 8 * 1024
"""Far above a name, a nonce and a salt; a longer message is none."""

_NONCE: Final = r"[!-+\--~]+"
_BASE64: Final = r"[A-Za-z0-9+/]+={0,2}"
_EXTENSIONS: Final = r"(?:,[A-Za-z]=[^\0,]+)*"

_CLIENT_FIRST: Final = re.compile(rf"([ny],(?:a=([^\0,]+))?,)(n=([^\0,]+),r=({_NONCE})({_EXTENSIONS}))")
_SERVER_FIRST: Final = re.compile(rf"r=({_NONCE}),s=({_BASE64}),i=([1-9][0-9]{{0,8}}){_EXTENSIONS}")
_CLIENT_FINAL: Final = re.compile(rf"(c=({_BASE64}),r=({_NONCE}){_EXTENSIONS}),p=({_BASE64})")
_SERVER_FINAL: Final = re.compile(rf"(?:v=({_BASE64})|e=([^\0,]+)){_EXTENSIONS}")
_ESCAPE_IN_NAME: Final = re.compile(r"=(2C|3D|)")


class MalformedMessage(ValueError):  # noqa: N818 (it states a fact)
    """Bytes that are no message of SCRAM in this place. The text shows none of them: they may be secret."""


@dataclass(frozen=True, slots=True)
class ClientFirst:
    """``header`` is what ``c=`` repeats, ``bare`` what is signed. The authorization id may be empty."""

    user: str
    nonce: str
    header: str
    bare: str
    authorization_id: str = ""


@dataclass(frozen=True, slots=True)
class ServerFirst:
    nonce: str
    salt: bytes
    iterations: int


@dataclass(frozen=True, slots=True)
class ClientFinal:
    """``unproven`` is the message without its proof, which is signed."""

    header: str
    nonce: str
    proof: bytes
    unproven: str


def client_first_bare(user: str, nonce: str) -> str:
    return f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"


def server_first_text(nonce: str, salt: bytes, iterations: int) -> str:
    return f"r={nonce},s={base64_text(salt)},i={iterations}"


def unproven_final(header: str, nonce: str) -> str:
    return f"c={base64_text(header.encode())},r={nonce}"


def parse_client_first(token: bytes) -> ClientFirst:
    found = _matched(_CLIENT_FIRST, token)
    return ClientFirst(_name(found[4]), found[5], found[1], found[3], _name(found[2] or ""))


def parse_server_first(token: bytes) -> ServerFirst:
    found = _matched(_SERVER_FIRST, token)
    return ServerFirst(found[1], _decoded(found[2]), int(found[3]))


def parse_client_final(token: bytes) -> ClientFinal:
    found = _matched(_CLIENT_FINAL, token)
    header = _decoded(found[2]).decode("utf-8", "replace")
    return ClientFinal(header, found[3], _decoded(found[4]), found[1])


def parse_server_final(token: bytes) -> bytes | str:
    """The server's signature, or its error."""
    found = _matched(_SERVER_FINAL, token)
    return found[2] if found[1] is None else _decoded(found[1])


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _matched(pattern: re.Pattern[str], token: bytes) -> re.Match[str]:
    if len(token) > MESSAGE_BYTES_MAX:
        raise MalformedMessage(f"a message of SCRAM has at most {MESSAGE_BYTES_MAX} bytes")
    try:
        found = pattern.fullmatch(token.decode())
    except UnicodeDecodeError:
        raise MalformedMessage("a message of SCRAM is not UTF-8") from None
    if found is None:
        raise MalformedMessage("a message of SCRAM is not of the form that it has in this place")
    return found


def _name(text: str) -> str:
    def meaning(escape: re.Match[str]) -> str:
        if not escape[1]:
            raise MalformedMessage("a name in a message of SCRAM has = before other than 2C or 3D")
        return "," if escape[1] == "2C" else "="

    return _ESCAPE_IN_NAME.sub(meaning, text)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise MalformedMessage("a message of SCRAM has base64 that cannot be read") from None
