"""Programs are run in processes of their own, recorded, and asked about with SQL; this process records nothing."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN") or ROOT / "build/kymo")
SECONDS = 120


def why_not_importable():
    if importlib.util.find_spec("kymo") is None:
        return f"{sys.executable} does not find the kymo package: make build"
    try:
        import kymo  # noqa: F401
    except ImportError as error:
        return f"kymo cannot be imported: {error}"
    return None


WHY_NOT = why_not_importable()


def pytest_collection_modifyitems(items):
    for item in items:
        if WHY_NOT:
            item.add_marker(pytest.mark.skip(reason=WHY_NOT))
        elif needs_program(item) and not KYMO.is_file():
            item.add_marker(pytest.mark.skip(reason=f"there is no {KYMO}: make build"))


def needs_program(item):
    return {"record", "supervise", "program"} & set(item.fixturenames)


class Recording:
    def __init__(self, path, done):
        self.path, self.stdout, self.stderr = path, done.stdout, done.stderr

    def query(self, sql):
        import kymo

        return kymo.query(sql, target=self.path)

    def one(self, sql):
        """The only value of the only row."""
        (row,) = self.query(sql)
        (value,) = row.values()
        return value

    def column(self, sql):
        return [next(iter(row.values())) for row in self.query(sql)]


def without_kymo(environ):
    return {key: value for key, value in environ.items() if not key.startswith("KYMO") or key == "KYMO_DUCKDB"}


def run(command, env, cwd, status=0):
    done = subprocess.run([str(word) for word in command], env=env, cwd=cwd, capture_output=True, text=True,
                          check=False, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def program_text(code):
    return "import kymo\n" + textwrap.dedent(code)


@pytest.fixture
def home(tmp_path):
    """An environment whose recordings are below tmp_path and nowhere else, without garbage collections, which come when they like."""
    live = tmp_path / "live"
    live.mkdir(mode=0o700)
    return {**without_kymo(os.environ), "KYMO_GC": "off", "KYMO_DIR": str(live), "XDG_STATE_HOME": str(tmp_path / "state"),
            "KYMO_BIN": str(KYMO)}


@pytest.fixture
def plain(home, tmp_path):
    """plain(code): runs it as Python code without recording; env=… adds to the environment."""
    def go(code, env=None, status=0):
        script = tmp_path / "script.py"
        script.write_text(program_text(code))
        return run([sys.executable, script], {**home, **(env or {})}, tmp_path, status)
    return go


@pytest.fixture
def record(plain, tmp_path):
    """record(code): runs it with KYMO=on, nobody supervising, and gives its recording."""
    def go(code, env=None, status=0):
        done = plain(code, {"KYMO": "on", **(env or {})}, status)
        runs = sorted((tmp_path / "live").iterdir())
        assert len(runs) == 1, f"{runs}\n{done.stderr}"
        return Recording(runs[0], done)
    return go


@pytest.fixture
def supervise(home, tmp_path):
    """supervise(code): runs it under `kymo run`, which keeps all rows of all its processes."""
    def go(code, status=0, words=None, env=None):
        script = tmp_path / "script.py"
        script.write_text(program_text(code))
        out = tmp_path / "run"
        done = run([KYMO, "run", "-o", out, "--", *(words or [sys.executable, script])], {**home, **(env or {})}, tmp_path, status)
        return Recording(out, done)
    return go
