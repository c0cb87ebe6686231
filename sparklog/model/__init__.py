"""The words that every layer shares: ids, error codes, configuration, time, ports.

Nothing here does I/O, starts a thread, or reads a clock; nothing here imports another sparklog layer.
"""
