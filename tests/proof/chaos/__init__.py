"""Chaos: faults upon real processes while real Kafka clients write and read, judged by what the clients saw.

run.py          the command (`make chaos`)
bench.py        ZooKeeper, Spark, brokers and controller candidates as processes of this machine
places.py       where a broker's Spark worker runs: plain, or in namespaces and on disks of its own
nemesis.py      what a fault is; the other modules of faults implement it
schedule.py     which fault comes when, drawn from a seed
walls.py        those places with walls: namespaces.py, machine.py, loop_disk.py, shim.py with shim.c
network.py      cuts, loss, delay and corruption (packets.py)
disks.py        power cuts, full, hanging and read-only disks, calls that fail
clocks.py       wall clocks that jump
crash_points.py brokers that end at one call that changes a file; traced.py judges how calls are counted
bare.py         brokers without Spark (broker_process.py)
bugs.py         bugs that are put into those
"""
