"""Handlers that hold what they are given until the test says so."""

import threading


class Parking:
    """A handler that answers nothing by itself: tests pick up the exchanges and answer them."""

    def __init__(self):
        self.exchanges = []
        self.arrived = threading.Semaphore(0)

    def __call__(self, exchange):
        self.exchanges.append(exchange)
        self.arrived.release()

    def next(self):
        assert self.arrived.acquire(timeout=60), "no request arrived"
        return self.exchanges[-1]


class Gate:
    """A handler that holds its thread until it is opened, then echoes."""

    def __init__(self, echo):
        self.echo = echo
        self.open = threading.Event()
        self.entered = threading.Semaphore(0)

    def __call__(self, exchange):
        self.entered.release()
        assert self.open.wait(20), "the gate was never opened"
        self.echo(exchange)
