"""Reading records that are in a remote store only.

``reader.HistoryReader`` answers fetches, from memory or by threads of its own; ``runs`` is that memory;
``segments.StoredSegments`` takes batches out of the objects of a store.
"""
