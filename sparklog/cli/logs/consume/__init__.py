"""``sparklog consume``: a topic's records, a line each; alone, or as a member of a group."""
