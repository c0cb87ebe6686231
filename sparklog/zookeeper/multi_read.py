"""Many nodes in one request: ZooKeeper's multi-read (operation 22, since 3.6), which kazoo lacks.

A request is a list of pairs of header and question, and ends with a final header. The answer has the same
form:

    header    type of the operation (int32), is it the end (1 byte), its error (int32)
    question  path (string), is a watch wanted (1 byte)
    found     data (buffer), stat (68 bytes)
    missing   a header of type -1, error (int32)

Each question has its own answer, so a missing or closed node does not affect the others. An older server
answers the whole request with Unimplemented.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kazoo.exceptions import EXCEPTIONS, KazooException, NoNodeError
from kazoo.protocol.paths import _prefix_root

from sparklog.model.zookeeper import Node, Stat

MULTI_READ: Final = 22
GET_DATA: Final = 4
ERROR: Final = -1

_HEADER: Final = struct.Struct(">i?i")
_INT: Final = struct.Struct(">i")
_STAT: Final = struct.Struct(">qqqqiiiqiiq")
_QUESTION_HEADER: Final = _HEADER.pack(GET_DATA, False, -1)
_END: Final = _HEADER.pack(-1, True, -1)
_NO_WATCH: Final = b"\0"


@dataclass(frozen=True, slots=True)
class MultiRead:
    """A request in the form that kazoo's connection accepts. ``paths`` lack the ``chroot``."""

    paths: Sequence[str]
    chroot: str
    type: int = MULTI_READ

    def serialize(self) -> bytes:
        questions = []
        for path in self.paths:
            name = _prefix_root(self.chroot, path).encode()
            questions += [_QUESTION_HEADER, _INT.pack(len(name)), name, _NO_WATCH]
        return b"".join([*questions, _END])

    @staticmethod
    def deserialize(answer: bytes, offset: int) -> list[Node | KazooException | None]:
        """The nodes in their order; None for one that is missing, an error for one that is refused."""
        nodes: list[Node | KazooException | None] = []
        while True:
            kind, is_end, _ = _HEADER.unpack_from(answer, offset)
            offset += _HEADER.size
            if is_end:
                return nodes
            if kind == ERROR:
                nodes.append(_refusal(answer, offset))
                offset += _INT.size
            else:
                node, offset = _read_node(answer, offset)
                nodes.append(node)


def _refusal(answer: bytes, offset: int) -> KazooException | None:
    (code,) = _INT.unpack_from(answer, offset)
    if code == NoNodeError.code:
        return None
    error: KazooException = EXCEPTIONS[code]()
    return error


def _read_node(answer: bytes, offset: int) -> tuple[Node, int]:
    (length,) = _INT.unpack_from(answer, offset)
    start = offset + _INT.size
    end = start + max(0, length)
    czxid, mzxid, _, _, version, _, _, owner, *_ = _STAT.unpack_from(answer, end)
    return Node(bytes(answer[start:end]), Stat(version, czxid, mzxid, owner)), end + _STAT.size
