"""Handlers of rules, tokens and passwords: on a cluster where everybody may do everything, there are none."""
