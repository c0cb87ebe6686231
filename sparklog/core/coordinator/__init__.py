"""What the coordinators of groups and of transactions share: one state machine for each partition of their
internal topic, whose log is its memory. Pure.
"""
