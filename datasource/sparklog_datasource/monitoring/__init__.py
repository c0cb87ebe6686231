"""How far streaming queries are behind their logs."""
