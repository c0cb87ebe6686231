"""ZooKeeper: the kazoo adapter, the znodes, the embedded server."""
