"""A partition's remote log: the copies of its segments in a store, and the rules of copying and deletion."""
