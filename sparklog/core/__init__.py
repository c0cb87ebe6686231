"""Pure state machines: facts in, actions out. No I/O, no threads, no clock, no dice."""
