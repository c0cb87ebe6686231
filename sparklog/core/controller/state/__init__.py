"""What a controller knows of its cluster, what ZooKeeper holds of it, and who may lead."""
