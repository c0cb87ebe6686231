"""How far streaming queries lag their logs."""
