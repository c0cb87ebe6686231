"""Settings of a cluster: the files that users write, and what is refused before anything starts."""
