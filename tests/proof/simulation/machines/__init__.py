"""Simulated machines and what runs on them: brokers, controllers, ZooKeeper, and the network between them."""
