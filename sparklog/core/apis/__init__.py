"""What an API of the protocol is: one row each, from which the other layers take what they need."""
