"""SQL from outside: a recording whose every number is known (tests/progs/sql_fixture.c), a query, the literal answer."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()


class Recording:
    def __init__(self, path, home):
        self.path, self.home = path, home
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}
        self.env.update(KYMO_DIR=str(home / "live"), XDG_STATE_HOME=str(home / "state"), HOME=str(home), TZ="UTC",
                        LC_ALL="C.UTF-8")

    def run(self, *arguments, **more):
        return subprocess.run([KYMO, *map(os.fspath, arguments)], env=self.env, cwd=self.home, capture_output=True,
                              check=False, timeout=60, **more)

    def __call__(self, sql, *options):
        """The rows of a query as CSV, without its header."""
        done = self.run("query", self.path, sql, "-f", "csv", *options)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().replace("\r\n", "\n").split("\n", 1)[1].rstrip("\n")

    def refused(self, sql, *options):
        """What a query that fails says, without the command's name."""
        done = self.run("query", self.path, sql, *options)
        assert done.returncode == 1 and not done.stdout, done.stdout.decode()
        return done.stderr.decode().removeprefix("kymo query: ").rstrip("\n")


@pytest.fixture(scope="session")
def recording(tmp_path_factory):
    home = tmp_path_factory.mktemp("sql")
    (home / "live").mkdir(mode=0o700)
    subprocess.run([PROGS / "sql_fixture", home / "small"], check=True)
    return Recording(home / "small", home)


@pytest.fixture(scope="session")
def packed(recording):
    """The same recording, packed."""
    path = recording.home / "run.kymo"
    done = recording.run("pack", recording.path, path)
    assert done.returncode == 0, done.stderr.decode()
    return Recording(path, recording.home)


@pytest.fixture(params=["recording", "packed"])
def both(request):
    return request.getfixturevalue(request.param)
