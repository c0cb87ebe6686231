"""Servers on the driver's host: ZooKeeper and the controller candidate."""
