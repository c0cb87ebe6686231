"""Handlers of transactions: of producers, of brokers that verify, and of administrators."""
