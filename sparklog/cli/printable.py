"""Text that others have chosen, such as a group's name, as a terminal may have it.

Control characters could move the cursor, colour what follows or turn its direction around, and so make a
table say what it does not. They are shown as Python writes them in a string.
"""


def printable(text: str) -> str:
    r"""``text`` with an escape, such as ``\x1b``, in place of each character that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)
