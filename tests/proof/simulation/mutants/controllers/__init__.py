"""Bugs of controllers: of their decisions on partitions, and of operations on brokers."""
