"""The broker's requests to the controller, and the watch on the active controller's address."""
