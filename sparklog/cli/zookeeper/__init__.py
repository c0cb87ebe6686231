"""``sparklog zookeeper``, and how commands reach a ZooKeeper themselves."""
