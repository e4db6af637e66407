"""Attacks from outside: hostile files, hostile queries, a second user of the machine."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
OTHER = 54321  # a user without an account; its files and processes are nobody else's


class Home:
    """A directory of its own for kymo: nothing of the user's is seen or touched."""

    def __init__(self, path):
        self.path = path
        (path / "live").mkdir(mode=0o700)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}
        self.env.update(KYMO_DIR=str(path / "live"), XDG_STATE_HOME=str(path / "state"), HOME=str(path), TZ="UTC",
                        LC_ALL="C.UTF-8", KYMO_QUIET="1")

    def __call__(self, *words, timeout=60, **more):
        return subprocess.run([KYMO, *map(os.fspath, words)], env=self.env, cwd=self.path, capture_output=True, text=True,
                              errors="surrogateescape", check=False, timeout=timeout, **more)


class OtherUser:
    """Runs commands as a second user: other_user("cat", path), other_user.popen(…)."""
    uid = OTHER

    def command(self, *words):
        return ["setpriv", "--reuid", str(OTHER), "--regid", str(OTHER), "--clear-groups", *map(os.fspath, words)]

    def __call__(self, *words, timeout=60, **more):
        return subprocess.run(self.command(*words), capture_output=True, text=True, check=False, timeout=timeout, **more)

    def popen(self, *words, **more):
        return subprocess.Popen(self.command(*words), **more)

    def directory(self, path):
        """Makes a directory that belongs to this user; the way to it becomes passable."""
        path.mkdir()
        os.chown(path, OTHER, OTHER)
        for parent in path.parents:
            if parent.stat().st_uid == os.getuid() and parent != pathlib.Path("/") and not parent.stat().st_mode & 0o001:
                parent.chmod(parent.stat().st_mode | 0o011)
        return path


@pytest.fixture(scope="session")
def other_user():
    if os.getuid() or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv, to be two users")
    return OtherUser()


@pytest.fixture
def kymo(tmp_path):
    return Home(tmp_path)
