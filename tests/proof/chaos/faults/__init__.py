"""Kinds of fault, each a ``Nemesis``.

signals.py      processes that are killed, stopped, paused and doubled
network.py      cuts, loss, delay and corruption (packets.py)
disks.py        power cuts, full, hanging and read-only disks, calls that fail
clocks.py       wall clocks that jump
crash_points.py brokers that end at one call that changes a file
"""
