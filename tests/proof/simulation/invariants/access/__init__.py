"""Rules of access rights: who has which rules when, and what is done by them."""
