"""The requests of groups: from the wire to the group's coordinator and back, one module an API.

A handler irons out what differs between an API's versions, asks the coordinator, and returns at once. The
coordinator answers from another thread, at once or after a rebalance.
"""
