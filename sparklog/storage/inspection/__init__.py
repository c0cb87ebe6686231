"""Descriptions of the files of a log directory, for ``sparklog dump-log``."""
