"""Histories of what clients saw, and a checker that judges them: tests/proof/docs/history.md.

The checker is independent: nothing here imports anything else of sparklog, so that no mistake of sparklog's
can be a mistake of its judge; an import contract holds that.
"""

from histories.check import Verdict, check
from histories.facts import Limits
from histories.findings import Finding
from histories.model import History
from histories.read import HistoryError, read_history
from histories.write import Writer

__all__ = ["Finding", "History", "HistoryError", "Limits", "Verdict", "Writer", "check", "read_history"]
