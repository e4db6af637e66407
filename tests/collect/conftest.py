"""Programs in every Python that is installed, asked from outside what they are doing."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
SECONDS = 60


def version_of(python):
    try:
        out = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:3], sys.base_prefix)"], check=True,
                             capture_output=True, text=True, timeout=30).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return None
    return tuple(int(n) for n in out[:3]), out[3]


def find_pythons():
    """Every CPython that can be found: on PATH, below ~/.pyenv, and the one that runs the tests."""
    found = {}
    names = [shutil.which(f"python3.{minor}") for minor in range(10, 20)] + ["/usr/bin/python3", sys.executable]
    names += sorted(str(p) for p in pathlib.Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    for name in filter(None, names):
        answer = version_of(name)
        if answer:
            found.setdefault(answer, name)
    return {name: version for (version, _prefix), name in found.items()}


ALL_PYTHONS = find_pythons()
PYTHONS = {name: version for name, version in ALL_PYTHONS.items() if (3, 11) <= version[:2] <= (3, 15)}
each_python = pytest.mark.parametrize(
    "python", PYTHONS, ids=[f"{'.'.join(map(str, v))}{'s' if n.startswith('/usr') else ''}" for n, v in PYTHONS.items()])


def clean(environ):
    return {key: value for key, value in environ.items() if not key.startswith("KYMO") or key == "KYMO_DUCKDB"}


def waits_for_input(pid):
    """Whether it, or a child of it, is in read(0, …): then it is where the test wants it for certain."""
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return any(pathlib.Path(f"/proc/{p}/syscall").read_text().startswith("0 0x0 ") for p in [pid, *children])
    except OSError:
        return False


class Program:
    """A program that prints "ready" when it is where the test wants it."""

    def __init__(self, child):
        self.child, self.pid = child, child.pid
        line = child.stdout.readline()
        assert line == "ready\n", line + child.stderr.read()
        until(lambda: waits_for_input(child.pid), 0.5)

    def say(self, word):
        self.child.stdin.write(word + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline().rstrip("\n")


@pytest.fixture
def start(tmp_path):
    """start(python, code): runs it until it says ready. Ended with the test."""
    running = []

    def go(python, code, prefix=(), env=None, name="program.py"):
        script = tmp_path / name
        script.write_text(textwrap.dedent(code))
        child = subprocess.Popen([*prefix, python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True, env={**clean(os.environ), **(env or {})})
        running.append(child)
        return Program(child)
    yield go
    for child in running:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            stream.close()


def kymo(*words, status=0, **more):
    done = subprocess.run([str(KYMO), *map(str, words)], capture_output=True, text=True, timeout=SECONDS,
                          check=False, stdin=subprocess.DEVNULL, env=clean(os.environ), **more)
    assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def backtrace(*words):
    return json.loads(kymo("backtrace", "--json", *words).stdout)


def frames(thread):
    """[(function, line)], the innermost first."""
    return [(frame["func"], frame["lineno"]) for frame in thread["frames"]]


def one(threads, name):
    (thread,) = [thread for thread in threads if thread["thread"] == name]
    return thread


def until(ask, seconds=30):
    """Asks until the answer is true; the answer."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer or time.monotonic() > end:
            return answer
        time.sleep(0.02)


def numbers(text):
    return [int(n) for n in re.findall(r"\d+", text)]


def refused_samples():
    """Why the kernel gives no samples here; None if it does."""
    done = subprocess.run([KYMO, "doctor", "-f", "json"], capture_output=True, text=True, timeout=60, check=False)
    row = next(row for row in json.loads(done.stdout) if row["name"] == "perf")
    return None if row["state"] == "works" else row["found"]


@pytest.fixture(scope="module")
def perf_events():
    """Skips where the kernel gives no samples."""
    why = refused_samples()
    if why:
        pytest.skip(why)


@pytest.fixture
def place(tmp_path):
    live = tmp_path / "live"
    live.mkdir(mode=0o700)
    return {**clean(os.environ), "KYMO_DIR": str(live), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def build(tmp_path):
    """build(text, *flags): compiles a program; C++ if the first flag is c++."""
    def go(text, *flags, name="prog"):
        cxx = flags[:1] == ("c++",)
        if cxx and not shutil.which("c++"):
            pytest.skip("no C++ compiler")
        source, out = tmp_path / f"{name}.{'cc' if cxx else 'c'}", tmp_path / name
        source.write_text(textwrap.dedent(text))
        subprocess.run(["c++" if cxx else "cc", *flags[cxx:], "-o", out, source, "-pthread"], check=True, timeout=120)
        return out
    return go


@pytest.fixture
def record(place, tmp_path):
    """record(*command): under kymo run, to its end; the recording's path."""
    def go(*command, words=(), status=0, env=None):
        out = tmp_path / "run"
        done = subprocess.run([KYMO, "run", "--force", *words, "-o", out, "--", *map(str, command)],
                              env={**place, **(env or {})}, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == status, done.stderr
        go.err = done.stderr
        return out
    return go
