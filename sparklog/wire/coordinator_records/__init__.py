"""The records of coordinators' internal topics, byte for byte as Kafka writes them.

Key and value each begin with a version, an int16. The key's version says what kind of record it is. The
fields follow in the layout of that version: see ``docs/format/consumer-offsets.md``.
"""
