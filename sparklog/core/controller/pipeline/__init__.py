"""The controller's work in progress: from commands and facts to steps, and from steps to writes and
messages.
"""
