"""`kymo run` in a terminal, under a shell with job control: keys do to the program what they do without kymo."""
import os
import pty
import re
import select
import signal
import time

import pytest

from run_tools import KYMO, Place, have, prog

pytestmark = pytest.mark.skipif(not have("bash"), reason="no bash")


class Terminal:
    """An interactive bash on a terminal of its own."""

    def __init__(self, place):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(place.path)
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"],
                       {**place.env, "PS1": "PROMPT> ", "TERM": "dumb", "HISTFILE": ""})
        self.seen = ""
        self.expect("PROMPT> ")

    def type(self, text):
        self.seen = ""
        os.write(self.fd, text.encode())

    def read(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace").replace("\r\n", "\n")
            except OSError:
                pass

    def expect(self, pattern, seconds=60):
        until = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            assert time.monotonic() < until, f"no {pattern!r} in {self.seen!r}"
            self.read(0.1)
        return self.seen

    def type_until(self, text, pattern, seconds=60):
        """Types it again and again: what is waited for may be later than any pause."""
        until = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            assert time.monotonic() < until, f"no {pattern!r} in {self.seen!r}"
            os.write(self.fd, text.encode())
            self.read(0.5)

    def settle(self, seconds=0.4):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.read(0.05)
        return self.seen

    def close(self):
        os.kill(self.pid, signal.SIGHUP)
        os.close(self.fd)
        os.waitpid(self.pid, 0)


@pytest.fixture
def place():
    place = Place()
    yield place
    place.remove()


@pytest.fixture(params=["without kymo", "with kymo"])
def terminal(place, request):
    terminal = Terminal(place)
    terminal.prefix = "" if request.param == "without kymo" else f"{KYMO} run -q -- "
    yield terminal
    terminal.close()


def start_signals(terminal):
    terminal.type(f"{terminal.prefix}{prog('run_signals')}\n")
    terminal.expect("ready\n")
    terminal.seen = ""


def lines(text):
    return [line.replace("^C", "").replace("^\\", "") for line in text.split("\n") if line]


def test_ctrl_c_and_ctrl_backslash_arrive_once(terminal):
    start_signals(terminal)
    terminal.type("\x03")
    terminal.expect("INT")
    assert lines(terminal.settle()) == ["INT"]
    terminal.type("\x1c")
    terminal.expect("QUIT")
    assert lines(terminal.settle()) == ["QUIT"]
    terminal.type("\x1a")
    terminal.expect("Stopped.*\n.*PROMPT> ")
    terminal.type("kill -TERM %1; fg\n")
    terminal.expect("TERM\n(?s:.*)PROMPT> ")


def test_ctrl_z_stops_the_job_and_fg_continues_it(terminal):
    start_signals(terminal)
    for _ in range(3):
        terminal.type("\x1a")
        terminal.expect("Stopped.*\n.*PROMPT> ")
        terminal.type("fg\n")
        terminal.expect("CONT\n")
        assert terminal.settle().count("CONT") == 1
    terminal.type("\x1a")
    terminal.expect("PROMPT> ")
    terminal.type("bg\n")
    terminal.expect("CONT\n")
    terminal.type("kill -USR1 %1\n")
    terminal.expect("USR1\n")
    assert terminal.settle().count("USR1\n") == 1
    terminal.type("kill %1\n")
    terminal.expect("TERM\n")


def test_the_default_action_of_ctrl_c_ends_the_job_by_that_signal(terminal):
    terminal.type(f"{terminal.prefix}sh -c 'echo begun; exec sleep 100'\n")
    terminal.expect("\nbegun\n")
    terminal.type("\x03")
    terminal.expect("PROMPT> ")
    terminal.type("echo status $?\n")
    terminal.expect("status 130\n")


def test_the_program_reads_from_the_terminal(terminal):
    terminal.type(f"{terminal.prefix}cat\n")
    time.sleep(0.5)
    terminal.type("hello\n")
    terminal.expect("hello\nhello\n")
    terminal.type("\x04")
    terminal.expect("PROMPT> ")


def test_a_job_in_the_background_that_reads_is_stopped(terminal):
    terminal.type(f"{terminal.prefix}cat &\n")
    terminal.expect("PROMPT> ")
    terminal.type_until("\n", r"\[1\]\+\s+Stopped")
    terminal.type("fg\n")
    time.sleep(0.5)
    terminal.type("again\n")
    terminal.expect("again\nagain\n")
    terminal.type("\x04")
    terminal.expect("PROMPT> ")


def test_the_first_line_fits_the_terminal(place):
    terminal = Terminal(place)
    terminal.type("stty cols 80\n")
    terminal.expect("PROMPT> ")
    terminal.type(f"{KYMO} run -o there --no-summary -- sh -c ': some words that make this command a long one'\n")
    seen = terminal.expect(r"recording there\n")
    terminal.close()
    line = next(line for line in seen.splitlines() if line.startswith("kymo: "))
    assert re.fullmatch(r"kymo: sh -c : s.*(…|\.\.).* long one ended with 0 after [0-9.]+ m?s; recording there", line)
    assert len(line) <= 80
