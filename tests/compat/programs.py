"""Programs of other people: compiled against the tree's headers, run with recordings of their own, asked with SQL."""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", BUILD / "kymo")).resolve()
HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 120


def said(command, env=None, cwd=None, seconds=SECONDS):
    """The standard output of a command that has to succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=env, cwd=cwd,
                          timeout=seconds, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def compiler(source):
    return "c++" if str(source).endswith(".cpp") else "cc"


def compiled(source, out, *options, libraries=("-lkymo",)):
    said([compiler(source), "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/include", f"-I{ROOT}/compat/include", *options,
          source, "-o", out, f"-L{BUILD}", *libraries, f"-Wl,-rpath,{BUILD}", "-pthread"])
    return out


class Home:
    """Recordings below a folder of the test's own, and nowhere else."""

    def __init__(self, path):
        self.live = path / "live"
        self.live.mkdir(mode=0o700)
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith(("KYMO", "VACCEL")) or key == "KYMO_DUCKDB"}
        self.env.update(KYMO_DIR=str(self.live), XDG_STATE_HOME=str(path / "state"), KYMO_QUIET="1")

    def run(self, *command, **env):
        return said(command, env={**self.env, **env})

    def recordings(self):
        return list(self.live.iterdir())

    def rows(self, sql):
        (recording,) = self.recordings()
        return json.loads(said([KYMO, "query", "-f", "json", recording, sql], env=self.env))

    def column(self, sql):
        return [next(iter(row.values())) for row in self.rows(sql)]

    def one(self, sql):
        (value,) = self.column(sql)
        return value
