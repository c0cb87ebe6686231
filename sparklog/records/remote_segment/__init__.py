"""A sealed segment as two objects: ``.arrow`` for people, ``.rest`` to give every batch back byte for byte.

docs/format/remote-segment.md describes both to the byte. Nothing here does I/O: writers are generators of
pieces, readers get the bytes that they ask for.
"""
