"""Quotas of users, clients and addresses. Nothing enforces them yet: brokers say so when one is set."""
