"""Memory from outside: a program with its own bookkeeping under `kymo run --memory`, and what SQL says of it."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
PYTHON = ROOT / ".venv/bin/python"
PACKAGE = KYMO.parent / "python"


class Lab:
    def __init__(self, home):
        self.home, self.runs = home, 0
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}
        self.env.update(KYMO_DIR=str(home / "live"), XDG_STATE_HOME=str(home / "state"), HOME=str(home), TZ="UTC",
                        LC_ALL="C.UTF-8")
        (home / "live").mkdir(mode=0o700, exist_ok=True)

    def run(self, *command, options=("--memory",), **env):
        """The finished program, run under kymo, and its recording."""
        self.runs += 1
        path = self.home / f"r{self.runs}"
        done = subprocess.run([KYMO, "run", "-q", "-o", path, *options, "--", *map(os.fspath, command)],
                              env={**self.env, **env}, cwd=self.home, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done, path

    def ask(self, path, sql):
        """The rows of a query, as dicts."""
        done = subprocess.run([KYMO, "query", path, sql, "-f", "json"], env=self.env, cwd=self.home,
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return Lab(tmp_path_factory.mktemp("memory"))
