"""The controller's shell: drives core.controller from ZooKeeper events and requests."""
