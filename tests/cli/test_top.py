"""kymo top: a running program on a terminal, without a change to it."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from conftest import KYMO

LIVE = """
import queue, sys, threading, time
def crunch(n):
    return sum(i * i for i in range(n))
def idle(q):
    q.get()
for i in range(20):
    threading.Thread(target=idle, args=(queue.Queue(),), daemon=True, name=f"idle-{i:02d}").start()
print("ready", flush=True)
while not sys.stdin.closed:
    crunch(20000)
    time.sleep(0.001)
"""


@pytest.fixture
def live(kymo):
    """A Python program under kymo run; its process ID is that of the recorded program."""
    (kymo.cwd / "live.py").write_text(LIVE)
    run = subprocess.Popen([KYMO, "run", "-q", "-o", "rec", "--", sys.executable, "live.py"], cwd=kymo.cwd, env=kymo.env,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    until = time.monotonic() + 60
    while not re.search(r"\d  crunch", kymo("top", "rec").out):
        assert time.monotonic() < until
        time.sleep(0.2)
    yield run
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=60)


class Screen:
    """A terminal of that size, as far as kymo top uses one."""

    def __init__(self, kymo, columns, lines, *words):
        self.columns, self.lines = columns, lines
        self.rows, self.at, self.raw = [""] * lines, [0, 0], ""
        master, slave = pty.openpty()
        self.fd = master
        self.resize(columns, lines)
        self.before = termios.tcgetattr(slave)
        env = {**kymo.env, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
        self.top = subprocess.Popen([KYMO, "top", *words], cwd=kymo.cwd, env=env, stdin=slave, stdout=slave, stderr=slave,
                                    start_new_session=True)
        self.slave = slave

    def resize(self, columns, lines):
        self.columns, self.lines, self.rows = columns, lines, [""] * lines
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.raw += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                pass

    def frames(self):
        """Each screen as a list of lines without paint, from the cursor's way home on."""
        parts = self.raw.split("\x1b[H")[1:]
        return [[re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[78])", "", line).strip("\r") for line in part.split("\n")] for part in parts]

    def expect(self, condition, seconds=60):
        until = time.monotonic() + seconds
        while True:
            whole = self.frames()[:-1]  # the last one may be incomplete
            if whole and condition(whole[-1]):
                return whole[-1]
            assert time.monotonic() < until, self.raw[-3000:]
            self.read(0.1)

    def type(self, text):
        self.raw = ""
        os.write(self.fd, text.encode())

    def end(self):
        status = self.top.wait(timeout=60)
        while select.select([self.fd], [], [], 0.2)[0]:
            before = len(self.raw)
            self.read(0)
            if len(self.raw) == before:
                break
        return status

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before and self.raw.count("\x1b[?1049l") == 1 and "\x1b[?25h" in self.raw

    def close(self):
        if self.top.poll() is None:
            self.top.kill()
            self.top.wait()
        os.close(self.slave)
        os.close(self.fd)


@pytest.fixture
def screen(kymo):
    opened = []

    def go(columns, lines, *words):
        opened.append(Screen(kymo, columns, lines, *words))
        return opened[-1]
    yield go
    for one in opened:
        one.close()


@pytest.mark.parametrize("columns, lines", [(80, 24), (120, 40), (60, 10)])
def test_a_screen_fits_the_terminal(live, screen, columns, lines):
    shown = screen(columns, lines, "rec")
    frame = shown.expect(lambda frame: frame[0].startswith("kymo top  live.py  pid "))
    assert len(frame) <= lines and all(len(line) <= columns for line in frame), frame
    assert frame[-1].startswith("q quit  p pause"), frame
    if lines >= 24:
        text = "\n".join(frame)
        assert re.search(r"^ *[\d.]+ +[\d.]+ +[\d.]+  crunch", text, re.M) and re.search(r"^memory   ", text, re.M), text
        assert re.search(r"^losses   (none|[\d,]+) of [\d,]+ rows", text, re.M), text
        assert re.search(r" idle-\d\d +\d+  lock +idle \(live\.py:6\)", text), text
    shown.type("q")
    assert shown.end() == 0 and shown.is_restored()


def test_keys_sort_pause_scroll_and_show_threads_and_help(live, screen):
    shown = screen(80, 24, "rec")
    shown.expect(lambda frame: any("by self" in line for line in frame))
    shown.type("s")
    shown.expect(lambda frame: any("by total" in line for line in frame))
    shown.type("h")
    shown.expect(lambda frame: any("quit; the program goes on" in line for line in frame))
    shown.type("h")
    shown.type("p")
    shown.expect(lambda frame: "PAUSED" in frame[0])
    shown.type(" ")
    shown.expect(lambda frame: "PAUSED" not in frame[0])
    shown.type("t")
    shown.expect(lambda frame: not any("functions of own code" in line for line in frame))
    shown.expect(lambda frame: sum(" idle-" in line for line in frame) > 10)
    shown.type("\x1b[6~")
    shown.expect(lambda frame: sum(" idle-" in line for line in frame) < 15)
    shown.type("g")
    shown.expect(lambda frame: sum(" idle-" in line for line in frame) > 10)
    shown.resize(100, 30)
    os.killpg(shown.top.pid, signal.SIGWINCH)
    shown.expect(lambda frame: len(frame) > 24)
    shown.type("q")
    assert shown.end() == 0 and shown.is_restored()
    assert live.poll() is None  # it goes on


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_terminal_as_it_was(live, screen, number):
    shown = screen(80, 24, "rec")
    shown.expect(lambda frame: frame[0].startswith("kymo top"))
    shown.raw = "\x1b[H"
    os.killpg(shown.top.pid, number)
    assert shown.end() == (0 if number == signal.SIGINT else -number) and shown.is_restored(), shown.raw


def test_the_death_of_the_reader_leaves_the_terminal_as_it_was_and_is_said(live, screen):
    shown = screen(80, 24, "rec")
    shown.expect(lambda frame: frame[0].startswith("kymo top"))
    (child,) = subprocess.run(["pgrep", "-P", str(shown.top.pid)], capture_output=True, text=True, check=True).stdout.split()
    shown.raw = "\x1b[H"
    os.kill(int(child), signal.SIGSEGV)
    assert shown.end() == 1 and shown.is_restored(), shown.raw
    assert "kymo top: DuckDB crashed" in shown.raw.split("\x1b[?1049l")[1], shown.raw


def test_without_a_terminal_it_prints_frames(kymo, live):
    done = kymo("top", "-n", "2", "--interval", "0.2", "rec")
    frames = done.out.split("\n\n")
    assert done.status == 0 and len(frames) == 2 and done.err == "" and "\x1b" not in done.out
    for frame in frames:
        assert frame.startswith("kymo top  live.py  pid ") and all(len(line) <= 80 for line in frame.splitlines())


def test_the_name_of_a_program_cannot_paint_the_terminal(kymo, screen):
    (kymo.cwd / "r\x1b[31med.py").write_text("import time\ntime.sleep(0.3)\n")
    kymo("run", "-q", "-o", "rec", "--", sys.executable, "r\x1b[31med.py")
    shown = screen(80, 24, "rec")
    shown.expect(lambda frame: frame[0].startswith("kymo top  r\\x1b[31med.py"))
    assert "\x1b[31m" not in shown.raw
    shown.type("q")
    assert shown.end() == 0


def test_an_ended_program_shows_its_last_seconds(kymo):
    kymo("run", "-q", "-o", "rec", "--", sys.executable, "-c", "import time; time.sleep(0.5)")
    out = kymo("top", "rec").out
    assert re.match(r"kymo top  \S+  pid \d+  exit 0  ", out) and "<module> (<string>:1)" in out, out


def test_steps_and_their_phases_are_shown(kymo):
    (kymo.cwd / "steps.py").write_text("""
import kymo, time
for _ in range(31):
    kymo.step()
    with kymo.phase("data"): time.sleep(0.01)
    time.sleep(0.01)
""")
    done = kymo("run", "-q", "-o", "rec", "--", sys.executable, "steps.py")
    assert done.status == 0, done.err
    out = kymo("top", "rec").out
    assert re.search(r"^steps    [\d.]+/s  median [\d.]+ ms  p99 [\d.]+ ms  last (29|30)  [▁-█]+$", out, re.M), out
    assert re.search(r"^step     data \d+ %  other \d+ %$", out, re.M), out


def test_a_program_that_is_not_recorded_is_offered_attach(kymo):
    with subprocess.Popen(["sleep", "60"]) as program:
        done = kymo("top", str(program.pid))
        program.kill()
    assert (done.status, done.out) == (1, "") and len(done.err.splitlines()) == 1
    assert f"process {program.pid} does not record; use `kymo attach {program.pid}`" in done.err


def test_a_packed_file_is_for_the_report(kymo):
    path = kymo.record("plain")
    kymo("pack", path, "run.kymo")
    done = kymo("top", "run.kymo")
    assert done.status == 1 and "kymo top shows running programs" in done.err and len(done.err.splitlines()) == 1
