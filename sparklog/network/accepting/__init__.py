"""Connections before they reach a processor: who may come in, TLS handshakes, and who is turned away."""
