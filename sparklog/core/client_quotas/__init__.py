"""Quotas of clients: what each user, client and address may use, and how long one waits that used more.

The rules are Kafka's (KIP-13, KIP-124, KIP-402, KIP-599, KIP-612). Nothing here reads a clock.
"""
