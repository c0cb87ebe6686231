"""Which rights a request needs, on which of the names in it, and how a response says that one lacks."""
