"""docs/installing.md: its index serves the wheel, and pip takes it from there and from nowhere else."""

import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import sparklog
from chaos.machines.places import free_ports
from sparklog_runtime.start.reachable import is_listening
from tests.pages import DOCS, blocks_of

ROOT = DOCS.parent
PAGE = DOCS / "installing.md"
WAIT_S = 30.0


def run(text: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-euc", text], cwd=folder, env=environment, check=True, timeout=120)


def on_this_host(text: str, port: int) -> str:
    """A block of the page with a free port, and an index of this host for that of a team."""
    return text.replace("8099", str(port)).replace("https://packages.example.com", f"http://localhost:{port}")


def test_the_release_is_written_in_one_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "sparklog/__init__.py"


@pytest.mark.integration
def test_pip_takes_the_wheel_from_the_index_of_the_page(tmp_path: Path) -> None:
    port = free_ports(1)
    here = [(block.kind, on_this_host(block.text, port)) for block in blocks_of(PAGE)]
    (make, download), (serve,) = (
        [text for kind, text in here if kind == wanted] for wanted in ("bash", "bash stays")
    )
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    subprocess.run([*build, "--directory", str(tmp_path / "dist")], cwd=ROOT, check=True, timeout=120)
    run(make, tmp_path)
    with subprocess.Popen(["bash", "-c", f"exec {serve}"], cwd=tmp_path, stderr=subprocess.DEVNULL) as server:
        try:
            deadline = time.monotonic() + WAIT_S
            while not is_listening("localhost", port):
                assert time.monotonic() < deadline, "the index does not answer"
                time.sleep(0.05)  # the fact lives in another process
            elsewhere = tmp_path / "elsewhere"
            elsewhere.mkdir()
            run(download.replace("pip install", "pip install --dry-run --no-deps"), elsewhere)
        finally:
            server.terminate()
    assert [path.name for path in elsewhere.iterdir()] == [
        f"sparklog-{sparklog.__version__}-py3-none-any.whl"
    ]
