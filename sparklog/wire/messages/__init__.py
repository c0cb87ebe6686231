"""One module per API: the messages, version-neutral."""
