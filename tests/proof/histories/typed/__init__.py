"""Rows of typed topics: what their columns hold as text, and the decoder of their batches.

A typed row is known in a history by the text of its topic's key column, which is its ``value``. What its
other columns hold are its *cells*, by the ids of the columns.
"""
