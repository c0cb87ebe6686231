"""Rights of requesters at a server, and the audit of what is denied and done."""
