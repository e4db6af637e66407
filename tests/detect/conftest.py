"""Programs that have a problem, and ones that have not, are run under kymo run and reported on."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
NATIVE = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve() / "detect_native"
PROGS = pathlib.Path(__file__).parent / "progs"
AT_ONCE = 3


class Judged:
    """One run of a program: its output, and what the report says of it."""

    def __init__(self, kymo, words, **more):
        with tempfile.TemporaryDirectory(prefix="kymo-detect-") as folder:
            env = {**kymo.env, **more, "KYMO_DIR": f"{folder}/live", "XDG_STATE_HOME": f"{folder}/state"}
            os.mkdir(f"{folder}/live", 0o700)
            command = [word.replace("FOLDER", folder) for word in map(str, words)]
            done = subprocess.run([KYMO, "run", "-q", "-o", f"{folder}/rec", "--", *command], env=env, capture_output=True,
                                  text=True, timeout=300, stdin=subprocess.DEVNULL)
            assert done.returncode in (0, -9), done.stdout + done.stderr  # some are killed, as their word says
            self.out = done.stdout
            report = kymo.report(f"{folder}/rec", env)
            assert report["problems"] == []  # a rule that fails is never silent
            self.verdicts = report["verdicts"]
            self.query = {sql: kymo.ask(f"{folder}/rec", sql, env) for sql in kymo.questions}

    def names(self):
        return [one["name"] for one in self.verdicts]

    def sentence(self, name):
        return next((one["sentence"] for one in self.verdicts if one["name"] == name), None)


class Runs:
    """Several programs at once, each command once; again() for one that a busy machine has disturbed."""

    def __init__(self):
        # At the rates that kymo chooses, as for a user.
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}, "LC_ALL": "C.UTF-8"}
        self.pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self.begun = {}
        self.questions = ["SELECT count(*)::INT AS n FROM python.samples"]

    def ask(self, recording, sql, env):
        return json.loads(subprocess.run([KYMO, "query", "-f", "json", recording, sql], env=env, capture_output=True,
                                         check=True).stdout)

    def report(self, recording, env):
        done = subprocess.run([KYMO, "report", recording, "-f", "json"], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def begin(self, words):
        if words not in self.begun:
            self.begun[words] = self.pool.submit(Judged, self, words)
        return self.begun[words]

    def again(self, words):
        self.begun[words] = self.pool.submit(Judged, self, words)


@pytest.fixture(scope="session")
def runs():
    if subprocess.run([sys.executable, "-c", "import kymo"], capture_output=True).returncode:
        pytest.skip("kymo is not importable: make build")
    if not NATIVE.exists():
        pytest.skip(f"there is no {NATIVE}: make build")
    made = Runs()
    yield made
    made.pool.shutdown(cancel_futures=True)
