"""Clients of group coordinators: members, readers of committed offsets, and keepers without membership."""
