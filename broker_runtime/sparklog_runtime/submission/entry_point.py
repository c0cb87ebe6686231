"""The file that ``spark-submit`` runs. It imports the driver, so nobody imports it."""

from pathlib import Path
from typing import Final

ENTRY_POINT: Final = Path(__file__).parents[1] / "submit.py"
