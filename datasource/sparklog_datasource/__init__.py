"""What ``pyspark_sparklog`` is made of: options, plans of reads, tasks that read and write, views of queries.

A package of its own, so that ``help(pyspark_sparklog)`` shows what is for users and nothing else. No user
imports it; its names may change with any release.
"""
