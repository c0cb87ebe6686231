"""What goes over a connection: a payload behind its size."""

import struct

SIZE = struct.Struct(">i")


def frame(payload):
    return SIZE.pack(len(payload)) + bytes(payload)
