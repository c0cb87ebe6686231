"""PEM as people write it: files and settings with blocks of base64 between ``-----BEGIN X-----`` and its END.

A property of one line has blanks where a file has line ends, and text may stand between blocks; Kafka's
clients take both. Blocks are written anew, one like the other, for OpenSSL. A block that begins and does not
end is an error: the file is still being written.
"""

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import Final

from sparklog.model.errors import ConfigError

_BLOCK: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_BEGIN: Final = "-----BEGIN "
_CERTIFICATES: Final = ("CERTIFICATE", "X509 CERTIFICATE")
_KEY: Final = "PRIVATE KEY"
_HEADER: Final = re.compile(r"^[\w-]+: .*$", re.MULTILINE)
_LINE_LENGTH: Final = 64


@dataclass(frozen=True, slots=True)
class PemBlock:
    """One block. Headers are those of a key that OpenSSL encrypted in its old way."""

    label: str
    headers: tuple[str, ...]
    base64: str

    @property
    def is_encrypted(self) -> bool:
        return self.label == "ENCRYPTED PRIVATE KEY" or any("ENCRYPTED" in one for one in self.headers)

    def __str__(self) -> str:
        lines = (f"-----BEGIN {self.label}-----", *self.headers, *([""] if self.headers else []))
        return "\n".join((*lines, *wrap(self.base64, _LINE_LENGTH), f"-----END {self.label}-----", ""))

    def __repr__(self) -> str:
        return f"PemBlock({self.label})"


def certificates_of(text: str) -> tuple[str, ...]:
    """The certificates in ``text``, each as a block; ConfigError if one is damaged."""
    return tuple(str(block) for block in _blocks(text) if block.label in _CERTIFICATES)


def private_key_of(text: str) -> PemBlock:
    """The one private key in ``text``; ConfigError if there is none, or several."""
    keys = [block for block in _blocks(text) if block.label.endswith(_KEY)]
    if len(keys) != 1:
        raise ConfigError(f"it has {len(keys)} private keys in PEM, and must have one")
    return keys[0]


def _blocks(text: str) -> Iterator[PemBlock]:
    found = list(_BLOCK.finditer(text))
    if len(found) < text.count(_BEGIN):
        raise ConfigError("a block of PEM begins and does not end: it is cut, or still being written")
    for block in found:
        if not block[0].isascii():
            raise ConfigError(
                f"a block {block[1]} has characters that are not ASCII: it is damaged, or still being written"
            )
        headers = tuple(_HEADER.findall(block[2]))
        body = "".join(_HEADER.sub("", block[2]).split())
        try:
            binascii.a2b_base64(body, strict_mode=True)
        except binascii.Error as error:
            raise ConfigError(f"a block {block[1]} is no base64: {error}") from None
        yield PemBlock(block[1], headers, body)
