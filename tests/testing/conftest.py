import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

RunPytest = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_pytest(tmp_path: Path) -> RunPytest:
    """Runs a user's tests, given as files by name, in a pytest of their own that has the plugin."""

    def run(*arguments: str, **files: str) -> "subprocess.CompletedProcess[str]":
        folder = tmp_path / "users-project"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(text)
        plugin = ("-p", "sparklog.testing.pytest_plugin", "-p", "no:cacheprovider")
        return subprocess.run(
            [sys.executable, "-m", "pytest", *plugin, "-W", "error", *arguments],
            cwd=folder,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
            timeout=170,
            check=False,
        )

    return run
