"""Clients that write and read while faults strike, and write down what they see."""
