"""Clients of two teams, each of which has a topic, and the rulers who say what a team may do."""
