"""Where histories are registered: those that break a rule, and legal ones."""

BROKEN = {}
"""Name of a history: the rule that it breaks, and who writes it."""

LEGAL = {}


def breaks(rule):
    def register(write):
        assert write.__name__ not in BROKEN
        BROKEN[write.__name__] = rule, write
        return write

    return register


def legal(write):
    assert write.__name__ not in LEGAL
    LEGAL[write.__name__] = write
    return write
