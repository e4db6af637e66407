"""Names of others on a terminal and in a pipe: a program whose comm, arguments, regions and directory hold escape sequences goes
through every command that prints, and no control character but newlines and kymo's own colours arrives."""
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import pytest
from conftest import KYMO, PROGS, Kymo
from probe_tools import program, until

TITLE = "\x1b]0;owned\x07"
HOSTILE = f"{TITLE}\u009b31m\n\u202e\u2066\x7f\x08"
COMM = "\x1b]0;x\x07\x9b\n\u202e".encode()[:15]  # what prctl() takes
COLOUR = re.compile(r"\x1b\[(?:0|1|2|3[1-5]|1;33)m")
# kymo's progress: return, text, clear to the end of the line.
PROGRESS = re.compile(r"\r[^\r\n]*\x1b\[K")


def controls(text):
    """The characters that could drive a terminal. Bytes that are not UTF-8 are surrogates, which count."""
    text = PROGRESS.sub("", COLOUR.sub("", re.sub(r"\r+\n", "\n", text)))
    return sorted({c for c in text if (ord(c) < 32 and c != "\n") or 0x7f <= ord(c) < 0xa0 or 0xdc80 <= ord(c) < 0xdd00
                   or c in "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"})


def on_a_terminal(kymo, *words, cwd=None, env=None):
    """The exit status, and all that a terminal of 100 columns is sent."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    child = subprocess.Popen([KYMO, *(word if isinstance(word, bytes) else str(word) for word in words)], cwd=cwd or kymo.cwd,
                             env={**kymo.env, "KYMO_QUIET": "", **(env or {})}, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    out = b""
    while True:
        try:
            out += os.read(master, 65536)
        except OSError:  # all have closed it
            break
    os.close(master)
    return child.wait(), out.decode(errors="surrogateescape")


def check(kymo, *words, cwd=None, env=None, clean=True):
    """Both ways: in a pipe, with stdout and stderr apart, and on a terminal."""
    piped = kymo(*words, cwd=cwd, env={"KYMO_QUIET": "", **(env or {})})
    assert controls(piped.err) == [], piped.err
    if clean:
        assert controls(piped.out) == [], piped.out
    shown = on_a_terminal(kymo, *words, cwd=cwd, env=env)[1]
    assert controls(shown) == [], shown
    return piped.out + piped.err + shown


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Recordings with hostile names below a directory with a hostile name, and a place to run in."""
    kymo = Kymo(tmp_path_factory.mktemp("terminal"))
    kymo.bad = kymo.cwd / f"dir{HOSTILE}"
    kymo.bad.mkdir()
    kymo.path = kymo.bad / "a"
    for name in ("a", "b"):
        done = kymo("run", "-o", kymo.bad / name, "--", PROGS / "cli_fixture", "hostile", HOSTILE)
        assert done.status == 0, done.err
    return kymo


@pytest.fixture(scope="module")
def target():
    """A running program with a hostile comm and command line."""
    code = ("import ctypes, sys\n"
            f"ctypes.CDLL(None).prctl(15, {COMM!r}, 0, 0, 0)\n"
            "print('up', flush=True)\nsys.stdin.read()\n")
    with program([sys.executable, "-c", code, HOSTILE]) as process:
        until(lambda: process.first_line == "up")
        yield process


@pytest.mark.parametrize("words", [
    ["ls"], ["ls", "--all"], ["report"], ["report", "-f", "json"], ["backtrace"], ["query", "FROM trace.regions"],
    ["query", "-f", "json", "FROM trace.zones"], ["query", "FROM kymo.processes"], ["query", "SELECT 1 AS \"a\x1b]0;x\x07\""],
    ["query", "SELECT nonsense\x1b]0;x\x07"], ["doctor"], ["config"], ["export", "-f", "folded", "-o", "-"],
    ["export", "-f", "chrome", "-o", "-"], ["export", "-f", "speedscope", "-o", "-"]], ids=" ".join)
def test_a_recording_with_hostile_names_is_shown_inert(place, words):
    command, *rest = words
    takes_target = command not in ("ls", "doctor")
    check(place, command, *([place.path] if takes_target else []), *rest, cwd=place.bad, env={"TMPDIR": f"/tmp/{TITLE}"})


def test_csv_is_exact_in_a_pipe_and_escaped_on_a_terminal(place):
    for words in (["query", place.path, "-f", "csv", "SELECT DISTINCT name FROM trace.zones"], ["report", place.path, "-f", "csv"]):
        assert "escape\x1b[31mred" in place(*words).out
        assert "escape\\x1b[31mred" in check(place, *words, clean=False)


def test_comparisons_packs_and_snapshots_name_their_files_inert(place):
    check(place, "compare", place.path, place.bad / "b")
    said = check(place, "pack", "--force", place.path, place.bad / "p.kymo") + \
        check(place, "snapshot", "--force", place.path, place.bad / "s.snapshot") + \
        check(place, "report", "--force", place.path, place.bad / "r.html") + \
        check(place, "export", "--force", "-f", "perfetto", "-o", place.bad / "e.pftrace", place.path) + \
        check(place, "query", "--force", "-f", "parquet", "-o", place.bad / "q.parquet", place.path, "FROM trace.regions")
    assert said.count("\\x1b]0;owned\\a") >= 10


def test_a_run_prints_its_program_children_and_directory_inert(place, tmp_path):
    code = ("import os, subprocess, time\n"
            f"subprocess.Popen(['sleep', '3'], executable='/bin/sleep')\nopen({str(tmp_path / 'x')!r}, 'w')\n")
    said = check(place, "run", "--force", "-o", place.bad / "c", "--", sys.executable, "-c", code, HOSTILE)
    assert "\\x1b]0;owned\\a" in said
    check(place, "run", "--force", "-o", place.bad / "d", "--", tmp_path / HOSTILE)  # cannot be started
    check(place, "run", "-o", place.bad, "--", "true")  # exists


def test_attach_prints_the_program_and_its_recording_inert(place, target):
    said = check(place, "attach", "--force", "--duration", "0.2", "-o", place.bad / "attached", target.pid)
    assert "\\x1b]0;x\\a" in said
    check(place, "backtrace", target.pid)
    check(place, "backtrace", "--why", "--native", target.pid)
    check(place, "attach", "-o", place.bad / "a", target.pid)  # exists
    check(place, "config", target.pid)
    check(place, "query", f"nothing{HOSTILE}", "SELECT 1")


def test_attach_to_a_recorded_program_names_its_recording_inert(place):
    env = {**place.env, "KYMO_QUIET": "1"}
    command = [KYMO, "run", "--force", "-o", place.bad / "live", "--", PROGS / "cli_fixture", "open"]
    with program(command, cwd=place.cwd, env=env) as run:
        pid = until(lambda: run.first_line)
        said = check(place, "attach", pid)
        assert "is already recorded" in said and "\\x1b]0;owned\\a" in said
        check(place, "ls", "--now")
        check(place, "backtrace", pid)


def test_removing_names_the_recording_inert(place):
    for name in ("r1", "r2"):
        assert place("run", "--force", "-o", place.bad / name, "--", "true").status == 0
    piped = place("rm", place.bad / "r1")
    assert controls(piped.err) == [] and "removed" in piped.err and "\\x1b]0;owned\\a" in piped.err
    status, shown = on_a_terminal(place, "rm", place.bad / "r2")
    assert (status, controls(shown)) == (0, []) and "\\x1b]0;owned\\a" in shown
    check(place, "rm", place.bad / "none")


def test_wrong_words_are_quoted_inert(place):
    for words in (["rm", HOSTILE], ["query", f"--{HOSTILE}"], ["nonsense" + HOSTILE], ["config", "1", f"{HOSTILE}=1"],
                  ["export", "-f", HOSTILE], ["serve", "--port", HOSTILE], ["run", "--keep", HOSTILE, "--", "true"],
                  ["attach", HOSTILE], ["completion", HOSTILE], ["help", HOSTILE]):
        check(place, *words)


def test_a_server_prints_its_address_inert(place):
    env = {**place.env, "KYMO_TOKEN": "t" * 40 + TITLE}
    child = subprocess.Popen([KYMO, "serve", "--port", "0", place.path], env=env, stderr=subprocess.PIPE, cwd=place.bad)
    try:
        lines = child.stderr.readline()
    finally:
        child.send_signal(signal.SIGTERM)
        lines += child.communicate(timeout=30)[1]
    assert controls(lines.decode(errors="surrogateescape")) == []


def test_the_check_itself_finds_what_it_looks_for():
    assert controls(f"\x1b[1mbold\x1b[0m\n{HOSTILE}") == sorted("\x1b\x07\x9b\u202e\u2066\x7f\x08")
    assert controls(os.fsdecode(b"\x9b")) == ["\udc9b"]
