"""The command line is tested from outside: a program, its arguments, the literal output."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()


class Result:
    def __init__(self, done):
        self.status = done.returncode
        self.raw = done.stdout
        self.out = done.stdout.decode(errors="surrogateescape")
        self.err = done.stderr.decode(errors="surrogateescape")


class Kymo:
    """Runs kymo in a directory of its own: nothing of the user's is seen or touched."""

    def __init__(self, home):
        self.home = home
        self.cwd = home / "work"
        self.cwd.mkdir()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}
        self.env.update(KYMO_DIR=str(home / "live"), XDG_STATE_HOME=str(home / "state"), HOME=str(home),
                        LC_ALL="C.UTF-8", TZ="UTC", TERM="xterm", KYMO_QUIET="1", PAGER="cat")
        (home / "live").mkdir(mode=0o700)

    def __call__(self, *arguments, stdin=b"", env=None, cwd=None, timeout=60):
        words = [a if isinstance(a, bytes) else str(a) for a in arguments]
        return Result(subprocess.run([KYMO, *words], input=stdin, capture_output=True,
                                     cwd=cwd or self.cwd, env={**self.env, **(env or {})}, timeout=timeout))

    def record(self, word="plain", *, keep=None):
        """A dead recording of cli_fixture, made by the program itself."""
        before = set((self.home / "live").iterdir())
        env = {**self.env, "KYMO": "on", **({"KYMO_KEEP": keep} if keep else {})}
        done = subprocess.run([PROGS / "cli_fixture", word], env=env, cwd=self.cwd, capture_output=True)
        assert word == "killed" or done.returncode == 0, done.stderr
        new = set((self.home / "live").iterdir()) - before
        assert len(new) == 1, "one run makes one recording"
        return new.pop()


@pytest.fixture
def kymo(tmp_path):
    return Kymo(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One recording of `cli_fixture plain` for tests that only ask."""
    kymo = Kymo(tmp_path_factory.mktemp("shared"))
    kymo.path = kymo.record("plain")
    return kymo


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    kymo = Kymo(tmp_path_factory.mktemp("hostile"))
    kymo.path = kymo.record("hostile")
    return kymo


@pytest.fixture
def python():
    """A Python that imports kymo."""
    path = ROOT / ".venv/bin/python"
    if subprocess.run([path, "-c", "import kymo"], capture_output=True).returncode:
        pytest.skip("kymo is not importable: .venv is not set up")
    return path
