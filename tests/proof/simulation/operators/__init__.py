"""Operators: they ask for operations on brokers, and after the last fault decide what no broker may."""
