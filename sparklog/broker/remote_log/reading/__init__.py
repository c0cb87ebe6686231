"""Reads of records that are in a remote store alone.

``reader.HistoryReader`` answers fetches, from the memory of ``runs`` or on threads of its own.
``segments.StoredSegments`` takes batches out of a store's objects.
"""
