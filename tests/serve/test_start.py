"""kymo run --serve, python -m kymo --port, and the command tracy."""
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import urllib.request

import pytest

from conftest import KYMO, PROGS, PYTHON, SECONDS, environment, free_port, make_home, program, until

TRACY = KYMO.with_name("tracy")


def viewer_of(pid):
    """The viewer that watches for the end of that kymo run."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"--while" in words and words[words.index(b"--while") + 1] == str(pid).encode():
                return int(entry.name)
    return None


@contextlib.contextmanager
def ended(find):
    try:
        yield
    finally:
        pid = find()
        if pid:
            os.kill(pid, signal.SIGTERM)


def ask(link, path="api/targets"):
    with urllib.request.urlopen(link + path, timeout=SECONDS) as answer:
        return answer.read().decode()


def test_run_serve_shows_the_program_and_outlives_it(tmp_path):
    home, port = make_home(tmp_path), free_port()
    command = [KYMO, "run", "--no-summary", f"--serve={port}", "--", PROGS / "probe_loop"]
    run = subprocess.Popen(command, cwd=home / "work", env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)
    with ended(lambda: viewer_of(run.pid)):
        assert run.stdout.readline() == "begun\n"
        link = re.search(r"kymo: the viewer is at (http://127.0.0.1:\d+/)\?token=[0-9a-f]{48}\n", run.stderr.readline()).group(1)
        until(lambda: '"program":"probe_loop"' in (text := ask(link)) and '"state":"running"' in text)
        run.stdin.close()
        # Its output ends with it, though the viewer goes on.
        assert "probe_loop ended with 0" in run.stderr.read() and run.wait(SECONDS) == 0
        run.stdout.close()
        until(lambda: '"state":"ended"' in ask(link))


def test_a_viewer_that_cannot_be_had_keeps_no_program_from_running(tmp_path):
    home = make_home(tmp_path)
    done = subprocess.run([KYMO, "run", "--serve=99999", "--", "true"], cwd=home / "work", env=environment(home), capture_output=True,
                          text=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (2, 'kymo run: --serve takes a port from 1 to 65535, not "99999"\n')


@pytest.mark.skipif(not PYTHON.exists(), reason="there is no .venv")
def test_python_programs_with_a_port_have_a_viewer(tmp_path):
    home, port = make_home(tmp_path), free_port()
    (home / "work/wait.py").write_text("import sys\nprint('begun', flush=True)\nsys.stdin.read()\n")
    command = [PYTHON, "-m", "kymo", "--port", str(port), "wait.py"]
    with program(home, *command) as run, ended(lambda: viewer_of(run.pid)):
        until(lambda: viewer_of(run.pid))
        assert until(lambda: '"program":"wait.py"' in ask(f"http://127.0.0.1:{port}/"))


def test_tracy_opens_the_viewer_as_large_as_asked(tmp_path):
    home, port = make_home(tmp_path), free_port()
    env = {**{k: v for k, v in environment(home).items() if "DISPLAY" not in k}, "TRACY_DPI_SCALE": "1.5"}
    viewer = subprocess.Popen([TRACY, "-p", str(port)], cwd=home / "work", env=env, stderr=subprocess.PIPE, text=True)
    try:
        link = re.search(r"^kymo serve: (http://127.0.0.1:\d+/)\?token=[0-9a-f]{48}\n", viewer.stderr.readline()).group(1)
        assert '/assets/zoom.css' in ask(link, "")
        assert ask(link, "assets/zoom.css") == "html{zoom:1.5}\n"
    finally:
        viewer.terminate()
        assert viewer.wait(SECONDS) == 0
        viewer.stderr.close()


def test_tracy_says_how_to_look_at_another_machine(tmp_path):
    def tracy(*words):
        done = subprocess.run([TRACY, *words], env=environment(tmp_path), capture_output=True, text=True, timeout=SECONDS)
        return done.returncode, done.stdout, done.stderr
    assert tracy("-a", "gpu7.example", "-p", "9000") == (
        0, "The viewer has to run on gpu7.example. To open it here, at http://localhost:9000/:\n"
        "  ssh -L 9000:127.0.0.1:9000 gpu7.example kymo serve --port 9000\n", "")
    assert tracy("-x")[0] == 2 and tracy("-h")[1].startswith("usage: tracy ")
