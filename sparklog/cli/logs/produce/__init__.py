"""``sparklog produce``: records from standard input."""
