"""One module per API: its request, its response and the parts of both, the same for all versions.

The modules are grouped by family; ``sparklog.wire.versions`` gives the family of each API.

Fields have the names that Kafka's schemas (and so kio's) give them, with two differences: durations and
timestamps are plain ints that end in ``_ms``, and "no topic id" is ``NO_TOPIC_ID`` instead of None. A field
that some version lacks is not written by it and takes its default when read; a request refuses to lose a
value that is not its default unless the class lists the field in ``IGNORABLE``.
"""
