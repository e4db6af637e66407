"""Lakes: Parquet files of many jobs, made of recordings that tests/progs/made_ranks writes."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
NATIVE = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
RANKED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI", "PMI", "PMIX", "SLURM", "TORCHELASTIC", "RAY", "MASTER")


class Place:
    """A working directory of its own: nothing of the user's is seen or touched."""

    def __init__(self, folder):
        self.path = folder / "work"
        self.path.mkdir()
        (folder / "live").mkdir(mode=0o700)
        self.env = {k: v for k, v in os.environ.items()
                    if (not k.startswith("KYMO") or k == "KYMO_DUCKDB") and not k.startswith(RANKED)}
        self.env.update(KYMO_DIR=str(folder / "live"), XDG_STATE_HOME=str(folder / "state"), HOME=str(folder), LC_ALL="C.UTF-8")

    def kymo(self, *words, good=True, timeout=200):
        done = subprocess.run([KYMO, *map(str, words)], cwd=self.path, env=self.env, capture_output=True, text=True,
                              timeout=timeout, stdin=subprocess.DEVNULL)
        assert not good or done.returncode == 0, done.stderr
        return done

    def start(self, *words, **more):
        return subprocess.Popen([KYMO, *map(str, words)], cwd=self.path, env=self.env, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, **more)

    def ask(self, target, sql):
        return json.loads(self.kymo("query", "-f", "json", target, sql).stdout)

    def value(self, target, sql):
        return next(iter(self.ask(target, sql)[0].values()))

    def made(self, name, **faults):
        """A job of made ranks, with a recording for each host."""
        words = [f"{key}={value}" for key, value in faults.items()]
        subprocess.run([NATIVE / "made_ranks", name, *words], cwd=self.path, env=self.env, check=True)
        return self.path / name


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A place whose lake `lake` has the job `a`, made of `job`: 8 ranks on 4 hosts, one of them late. Tests only read it."""
    place = Place(tmp_path_factory.mktemp("lake"))
    place.made("job", ranks=8, per_host=2, steps=60, late="3:3000", samples=1)
    place.kymo("lake", "add", "--run", "a", "job", "lake")
    return place
