"""Jobs of several ranks: real torchrun with gloo, separate `kymo run`s, and made jobs of many recordings."""
import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
NATIVE = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
PROGS = pathlib.Path(__file__).parent / "progs"
RANKED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI", "PMI", "PMIX", "SLURM", "TORCHELASTIC", "RAY", "MASTER")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


class Place:
    """A working directory of its own: nothing of the user's is seen or touched."""

    def __init__(self, folder):
        self.path = folder / "work"
        self.path.mkdir()
        (folder / "live").mkdir(mode=0o700)
        self.env = {k: v for k, v in os.environ.items()
                    if (not k.startswith("KYMO") or k == "KYMO_DUCKDB") and not k.startswith(RANKED)}
        self.env.update(KYMO_DIR=str(folder / "live"), XDG_STATE_HOME=str(folder / "state"), HOME=str(folder),
                        LC_ALL="C.UTF-8", OMP_NUM_THREADS="1", KYMO_SAMPLE_RATE="0.01")
        self.live = folder / "live"

    def kymo(self, *words, env=None, timeout=100):
        return subprocess.run([KYMO, *map(str, words)], cwd=self.path, env={**self.env, **(env or {})}, capture_output=True,
                              text=True, timeout=timeout, stdin=subprocess.DEVNULL)

    def start(self, *words, env=None, **more):
        return subprocess.Popen([KYMO, *map(str, words)], cwd=self.path, env={**self.env, **(env or {})},
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, **more)

    def ask(self, target, sql):
        done = self.kymo("query", "-f", "json", target, sql)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def verdicts(self, target):
        done = self.kymo("report", target, "-f", "json")
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["problems"] == []
        return {one["name"]: one for one in report["verdicts"]}

    def torchrun(self, ranks, kind, name, program="train.py", **more):
        """One `kymo run` of torchrun with so many ranks."""
        return self.kymo("run", "-q", "-o", name, "--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", ranks,
                         "--master-port", free_port(), PROGS / program, kind, **more)

    def ranks_in_background(self, count, kind, directory="jobs/", prefix=lambda rank: (), more=()):
        """A `kymo run` for each rank, as srun starts them."""
        port = free_port()
        begun = []
        for rank in range(count):
            env = {**self.env, "RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "MASTER_PORT": str(port),
                   "MASTER_ADDR": "127.0.0.1", "KYMO_JOB": "job7"}
            words = [*prefix(rank), KYMO, "run", "-q", "-o", directory, "--", sys.executable, PROGS / "train.py", kind, *more]
            begun.append(subprocess.Popen([str(word) for word in words], cwd=self.path, env=env, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True))
        return begun

    def ranks(self, *words, **more):
        """All are waited for: (what was said, exit status) of each."""
        begun = self.ranks_in_background(*words, **more)
        try:
            return [(one.communicate(timeout=100)[1], one.returncode) for one in begun]
        finally:
            for one in begun:
                one.kill()


def namespaces():
    """A prefix that makes a command a host of its own: PID, UTS and mount namespaces."""
    probe = subprocess.run(["unshare", "-Ur", "--uts", "--pid", "--fork", "--mount-proc", "hostname", "probe"], capture_output=True)
    if probe.returncode:
        pytest.skip(f"this machine does not allow namespaces: {probe.stderr.decode().strip()}")
    return lambda rank: ("unshare", "-Ur", "--uts", "--pid", "--fork", "--mount-proc", "sh", "-c",
                         f'hostname host{rank}; exec "$@"', "sh")


def make_job(place, name, words):
    """A made job (tests/progs/made_ranks.c); its path."""
    subprocess.run([NATIVE / "made_ranks", place.path / name, *words.split()], check=True, timeout=60)
    return place.path / name


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)
