"""What chaos runs as processes, and the places that they run in.

bench.py        ZooKeeper, Spark, brokers and controller candidates as processes of this machine
bare.py         brokers without Spark (broker_process.py)
places.py       where a broker's Spark worker runs: plain, or in namespaces and on disks of its own
walls.py        those places with walls: namespaces.py, machine.py, loop_disk.py, shim.py with shim.c
traced.py       judges how shim.c counts calls
"""
