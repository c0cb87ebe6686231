"""Histories of what clients saw, and a checker that judges them: docs/format/history.md.

The checker is independent: nothing here imports anything else of sparklog, so that no mistake of sparklog's
can be a mistake of its judge; an import contract holds that.
"""

from sparklog.testing.histories.check import Verdict, check
from sparklog.testing.histories.facts import Limits
from sparklog.testing.histories.findings import Finding
from sparklog.testing.histories.model import History
from sparklog.testing.histories.read import HistoryError, read_history
from sparklog.testing.histories.write import Writer

__all__ = ["Finding", "History", "HistoryError", "Limits", "Verdict", "Writer", "check", "read_history"]
