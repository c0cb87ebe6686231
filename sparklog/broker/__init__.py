"""The broker: the composition root that joins log, machine, reactor and controller."""
