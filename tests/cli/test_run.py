"""`kymo run`: the program cannot tell that it is recorded, and what kymo has to say goes to stderr."""
import os
import re
import resource
import signal
import subprocess
import sys
import time

import pytest

from run_tools import KYMO, Place, only_recording, processes, prog, run_file, zone_streams


@pytest.fixture
def place():
    place = Place()
    yield place
    place.remove()


# --- the program is the same with and without (FAULTS 39) ------------------------------------------------------

def both(place, command, **options):
    """(status, stdout, stderr) without and with kymo, under the same conditions."""
    results = []
    for words in (command, [KYMO, "run", "--quiet", "--", *command]):
        stdin = options.get("input")
        extra = {k: v for k, v in options.items() if k != "input"}
        if stdin is None:
            extra.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run(words, cwd=place.path, env=place.env, capture_output=True, input=stdin, timeout=60, **extra)
        results.append((done.returncode, done.stdout, done.stderr))
    return results


SAME = {
    "nothing": ["true"],
    "status 1": ["false"],
    "status 255": ["sh", "-c", "exit 255"],
    "output": ["sh", "-c", "echo out; echo err >&2; exit 3"],
    "much output": ["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; exit 4"],
    "killed by TERM": ["sh", "-c", "kill -TERM $$"],
    "killed by KILL": ["sh", "-c", "kill -KILL $$"],
    "killed by INT": ["sh", "-c", "kill -INT $$"],
    "killed by PIPE": ["sh", "-c", "kill -PIPE $$"],
    "killed by a realtime signal": ["sh", "-c", "kill -40 $$"],
    "aborted": ["sh", "-c", "ulimit -c 0; kill -ABRT $$"],
    "odd arguments": ["printf", "<%s>\\n", "", "a b", "--", "-o", "*", "$HOME", "\n", "\x01\xff"],
    "a script that signals its group": ["sh", "-c", "trap 'echo got it' USR1; kill -USR1 0; echo on; exit 5"],
    "its own state": [prog("run_state"), "6", "two words"],
    "a pipe that is closed early": ["sh", "-c", "yes | head -1"],
    "children": ["sh", "-c", "for i in 1 2 3; do (exit $i) & done; wait; echo done"],
    "recorded workers": ["sh", "-c", f"{prog('run_workers')} 20 10 | cut -d' ' -f1"],
}


@pytest.mark.parametrize("name", SAME)
def test_output_and_status_are_the_same(place, name):
    without, with_kymo = both(place, SAME[name], **({"start_new_session": True} if "group" in name else {}))
    assert with_kymo == without


def test_standard_input_goes_to_the_program(place):
    without, with_kymo = both(place, ["cat"], input=b"one\ntwo\0" * 100000)
    assert with_kymo == without and len(with_kymo[1]) == 800000


LOOK = """
import os, sys
def is_open(fd):
    try:
        return os.fstat(fd) is not None
    except OSError:
        return False
found = [fd for fd in range(64) if is_open(fd)]
open(sys.argv[1], "w").write(str(found))
sys.exit(5)
"""


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_descriptors_stay_closed(place, closed):
    def close():
        for fd in closed:
            os.close(fd)
    for name, words in (("without", []), ("with", [KYMO, "run", "--"])):
        done = subprocess.run([*words, "python3", "-c", LOOK, name], cwd=place.path, env=place.env, preexec_fn=close,
                              stdin=subprocess.DEVNULL, timeout=30)
        assert done.returncode == 5
    assert (place.path / "with").read_text() == (place.path / "without").read_text()
    # And nothing of kymo's own was written to a file that got such a number.
    assert (only_recording(place) / "run").stat().st_size > 4000


CONDITIONS = {
    "umask": lambda: os.umask(0o027),
    "SIGCHLD ignored": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    "SIGINT and SIGHUP ignored": lambda: (signal.signal(signal.SIGINT, signal.SIG_IGN), signal.signal(signal.SIGHUP, signal.SIG_IGN)),
    "SIGUSR1 and SIGCHLD blocked": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGCHLD]),
    "everything blocked": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()),
    "lower priority": lambda: os.nice(3),
    "few files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)),
    "no core": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    "an open file": lambda: os.dup2(1, 77, inheritable=True),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_what_a_program_inherits_is_the_same(place, condition):
    without, with_kymo = both(place, [prog("run_state"), "0"], preexec_fn=CONDITIONS[condition])
    assert with_kymo == without


def test_a_pipe_that_the_program_closes_is_closed(place):
    """kymo holds no copy of the program's output: the reader sees its end while the program goes on."""
    child = place.popen("-q", "--", "sh", "-c", "echo x; exec >&-; sleep 5", stdout=subprocess.PIPE)
    start = time.monotonic()
    assert child.stdout.read() == b"x\n"
    assert time.monotonic() - start < 4
    child.terminate()
    child.wait()


# --- signals ---------------------------------------------------------------------------------------------------

class Signals:
    """A program that tells which signals arrive, under kymo, in a group of its own."""

    def __init__(self, place):
        self.kymo = place.popen("-q", "--", prog("run_signals"), stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert self.kymo.stdout.readline() == "ready\n"
        self.target = run_file(only_recording(place))["target"] or self.wait_for_target(place)

    def wait_for_target(self, place):
        while not run_file(only_recording(place))["target"]:
            time.sleep(0.01)
        return run_file(only_recording(place))["target"]

    def end(self):
        """What arrived until now."""
        time.sleep(0.2)
        os.kill(self.kymo.pid, signal.SIGTERM)
        rest = self.kymo.stdout.read().split()
        assert self.kymo.wait(10) == 0
        assert rest[-1] == "TERM"
        return rest[:-1]


def test_signals_for_kymo_are_passed_on(place):
    signals = Signals(place)
    for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGALRM,
                   signal.SIGWINCH, signal.SIGCONT, signal.SIGURG):
        os.kill(signals.kymo.pid, number)
        time.sleep(0.03)
    assert signals.end() == ["USR1", "USR2", "HUP", "INT", "QUIT", "ALRM", "WINCH", "CONT", "URG"]


def test_a_signal_for_the_group_arrives_once(place):
    signals = Signals(place)
    for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGUSR2):
        os.killpg(signals.kymo.pid, number)
        time.sleep(0.05)
    assert sorted(signals.end()) == ["INT", "USR1", "USR2"]  # each once; a slow machine delivers the lowest number first


def test_pkill_by_the_name_kymo_reaches_the_program(place):
    signals = Signals(place)
    subprocess.run(["pkill", "-USR1", "-s", str(signals.kymo.pid), "-f", "kymo run"], check=True)
    assert signals.end() == ["USR1"]


def test_queued_signals_keep_their_value(place):
    import ctypes
    signals = Signals(place)
    ctypes.CDLL(None).sigqueue(signals.kymo.pid, signal.SIGRTMIN + 3, ctypes.c_void_p(42))
    assert signals.end() == ["RT=42"]


def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def wait_for_state(pid, wanted):
    for _ in range(200):
        if state(pid) in wanted:
            return
        time.sleep(0.02)
    assert state(pid) in wanted


def test_a_stopped_program_stops_kymo_and_is_continued_with_it(place):
    signals = Signals(place)
    os.kill(signals.target, signal.SIGSTOP)
    wait_for_state(signals.kymo.pid, "T")
    assert os.WIFSTOPPED(os.waitpid(signals.kymo.pid, os.WUNTRACED)[1])
    os.kill(signals.kymo.pid, signal.SIGCONT)
    wait_for_state(signals.target, "S")
    assert "CONT" in signals.end()


def test_a_program_that_is_continued_alone_wakes_kymo(place):
    signals = Signals(place)
    os.kill(signals.target, signal.SIGSTOP)
    wait_for_state(signals.kymo.pid, "T")
    os.kill(signals.target, signal.SIGCONT)
    wait_for_state(signals.kymo.pid, "SR")
    signals.end()


def test_a_program_that_is_killed_while_stopped_wakes_kymo(place):
    signals = Signals(place)
    os.kill(signals.target, signal.SIGSTOP)
    wait_for_state(signals.kymo.pid, "T")
    os.kill(signals.target, signal.SIGKILL)
    assert signals.kymo.wait(10) == -signal.SIGKILL


# --- options ---------------------------------------------------------------------------------------------------

WRONG = {
    (): "kymo run: no program given; usage: kymo run [OPTIONS] -- PROGRAM [ARGUMENTS]\n",
    ("--",): "kymo run: no program given; usage: kymo run [OPTIONS] -- PROGRAM [ARGUMENTS]\n",
    ("--keep", "some", "--", "true"): 'kymo run: --keep takes all, flight or rules, not "some"\n',
    ("--budget", "lots", "--", "true"): 'kymo run: --budget: "lots" is not a budget; use a form such as 1G or mem=1G,disk=4G\n',
    ("--budget", "1K", "--", "true"): 'kymo run: --budget: "1K" is too small; the minimum is 1M\n',
    ("--preload", "--", "true"): "kymo run: unknown option --preload; kymo help run lists the options\n",
    ("--watch", "loss", "--", "true"): 'kymo run: --watch takes NAME@FUNCTION, such as loss@train_step, not "loss"\n',
    ("--torch-ops=some", "--", "true"): "kymo run: --torch-ops takes all or a number of steps, not \"some\"\n",
    ("--peak-flops", "-1", "--", "true"): "kymo run: --peak-flops takes FLOP/s, such as 312e12, or measure, not \"-1\"\n",
    ("--torch-every", "0", "--", "true"): "kymo run: --torch-every needs a number of steps, at least 1, not 0\n",
    ("--kep", "all", "--", "true"): "kymo run: unknown option --kep; did you mean --keep?\n",
    ("-o",): "kymo run: --output needs a value: DIR\n",
}


def test_options_may_be_abbreviated_where_one_option_begins_like_this(place):
    assert place.run("--kee", "all", "--out", "short", "--", "true").returncode == 0
    assert (place.path / "short").is_dir()
    assert place.run("--torch-", "--", "true").stderr.decode().startswith("kymo run: unknown option --torch-")


@pytest.mark.parametrize("words", WRONG, ids=lambda words: " ".join(words) or "nothing")
def test_wrong_use_is_one_line_and_status_2(place, words):
    done = place.run(*words)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", WRONG[words])
    assert not list(place.path.glob("kymo-*"))


@pytest.mark.parametrize("command, status, sentence", [
    ("no-such-command", 127, "kymo run: no-such-command: command not found\n"),
    ("/no/such/file", 127, "kymo run: cannot execute /no/such/file: No such file or directory\n"),
    ("/etc/passwd", 126, "kymo run: cannot execute /etc/passwd: Permission denied\n"),
    ("/", 126, "kymo run: cannot execute /: Permission denied\n"),
])
def test_a_command_that_cannot_start_leaves_nothing(place, command, status, sentence):
    done = place.run("--", command)
    assert (done.returncode, done.stderr.decode()) == (status, sentence)
    assert not list(place.path.glob("kymo-*")) and not place.live_runs()


def test_a_missing_interpreter_is_named_as_the_reason(place):
    script = place.path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    done = place.run("--", "./script")
    assert done.returncode == 127
    assert done.stderr.decode() == "kymo run: cannot execute ./script: its interpreter (#! line) does not exist\n"


def test_help_lists_the_options(place):
    done = place.run("--help")
    assert done.returncode == 0 and done.stderr == b""
    for word in ("--output", "--keep", "--budget", "--no-summary", "--quiet", "--force"):
        assert word in done.stdout.decode()


def test_options_of_the_program_are_the_programs(place):
    done = place.run("-q", "echo", "-o", "x", "--help")
    assert (done.returncode, done.stdout) == (0, b"-o x --help\n")


def test_the_recording_goes_where_o_says(place):
    assert place.run("-q", "-o", "there", "--", prog("run_rows"), "100").returncode == 0
    assert sum(s.emitted_rows for s in zone_streams(place.path / "there")) == 100
    assert run_file(place.path / "there")["peer"] == "" and not place.live_runs()


def test_every_look_at_a_run_that_is_over_finds_the_same_times(place):
    assert place.run("-q", "-o", "there", "--", prog("run_rows"), "1000").returncode == 0
    words = [KYMO, "query", "there", "SELECT sum(start_ns), sum(duration_ns), max(ended_ns) FROM trace.zones, kymo.processes"]
    looks = set()
    for _ in range(4):
        looks.add(subprocess.run(words, cwd=place.path, env=place.env, capture_output=True, check=True).stdout)
        time.sleep(0.1)  # a clock that is measured up to now is another one now
    assert len(looks) == 1, looks


def test_a_directory_that_is_not_empty_stays_and_the_recording_gets_another_name(place):
    (place.path / "there").mkdir()
    (place.path / "there/mine").write_text("precious")
    done = place.run("--no-summary", "-o", "there", "--", "true")
    assert done.returncode == 0
    assert done.stderr.decode().startswith("kymo: there is not empty; the recording is there-2\n")
    done = place.run("--no-summary", "--force", "-o", "there", "--", "true")
    assert done.returncode == 0
    assert done.stderr.decode().startswith("kymo run: there exists and is not a recording; --force replaces only recordings\n"
                                           "kymo: there is not empty; the recording is there-3\n")
    assert (place.path / "there/mine").read_text() == "precious"
    assert (place.path / "there-2/run").exists() and (place.path / "there-3/run").exists()


def test_force_replaces_a_recording(place):
    assert place.run("-q", "-o", "there", "--", prog("run_rows"), "100").returncode == 0
    assert place.run("-q", "-o", "there", "--", prog("run_rows"), "200").returncode == 0
    assert sum(s.emitted_rows for s in zone_streams(place.path / "there-2")) == 200
    assert place.run("-q", "--force", "-o", "there", "--", prog("run_rows"), "300").returncode == 0
    assert sum(s.emitted_rows for s in zone_streams(place.path / "there")) == 300


def test_a_directory_that_cannot_be_made_is_named(place):
    done = place.run("--no-summary", "-o", "no/such/there", "--", "true")
    assert done.returncode == 0
    assert done.stderr.decode().startswith("kymo: cannot create the recording no/such/there: No such file or directory; the "
                                           "recording is /")


# --- what is recorded ------------------------------------------------------------------------------------------

def test_every_row_is_kept_by_default(place):
    done = place.run("-q", "--", prog("run_rows"), "500000", "0", "2")
    streams = zone_streams(only_recording(place))
    assert sum(s.emitted_rows for s in streams) == int(done.stdout) == 1000000
    assert sum(s.kept() for s in streams) == 1000000 and sum(s.dropped for s in streams) == 0
    assert not place.live_runs()


def test_every_row_is_kept_where_both_halves_are_on_one_file_system(place):
    """Segments are moved by a second link then."""
    env = {"KYMO_DIR": str(place.path / "live")}
    assert place.run("-q", "--", prog("run_rows"), "500000", "1000", env=env).returncode == 0
    stream, = zone_streams(only_recording(place))
    assert (stream.emitted_rows, stream.kept(), stream.dropped) == (500000, 500000, 0)
    assert not list((place.path / "live").iterdir())


def test_metrics_can_be_switched_off(place):
    assert place.run("-q", "--no-native", "--", prog("run_rows"), "10", env={"KYMO_SYSTEM_RATE": "0"}).returncode == 0
    collector, = processes(only_recording(place), role=1)
    assert {s.table for s in collector.streams if s.emitted_rows} <= {"kymo.costs"}, "but what it cost itself"
    assert len(zone_streams(only_recording(place))) == 1


def test_flight_keeps_the_last_rows(place):
    assert place.run("-q", "--keep", "flight", "--", prog("run_rows"), "100000").returncode == 0
    stream, = zone_streams(only_recording(place))
    assert stream.emitted_rows == 100000
    assert len(list(stream.folders[0].glob(f"s{stream.id}.[0-9]*"))) == 1


def test_beyond_the_disk_budget_the_oldest_rows_go(place):
    assert place.run("-q", "--budget", "disk=8M", "--", prog("run_rows"), "3000000").returncode == 0
    recording = only_recording(place)
    stream, = zone_streams(recording)
    rows = stream.rows()
    assert stream.emitted_rows == 3000000 and 0 < len(rows) < 500000
    assert max(rows) == 2999999 and sorted(rows) == list(range(min(rows), 3000000))
    assert sum(p.stat().st_blocks * 512 for p in recording.rglob("s*")) < 14 << 20


def test_the_end_of_the_program_is_recorded(place):
    assert place.run("-q", "--", prog("run_end"), "exit").returncode == 8
    recording = only_recording(place)
    process, = processes(recording)
    assert (process.ended, process.wstatus, process.wstatus_known) == (2, 8 << 8, 1)
    assert run_file(recording)["ended"] == 1 and run_file(recording)["wstatus"] == 8 << 8


def test_system_metrics_are_there_for_the_shortest_program(place):
    assert place.run("-q", "--", "true").returncode == 0
    collector, = processes(only_recording(place), role=1)
    rows = {s.table: s.emitted_rows for s in collector.streams}
    assert rows.get("host.process", 0) >= 1


def test_peak_memory_is_known_even_if_nobody_looked_at_the_right_moment(place):
    import struct
    code = "b = bytearray(200 << 20); del b"
    assert place.run("-q", "--", "python3", "-c", code).returncode == 0
    collector, = processes(only_recording(place), role=1)
    stream, = [s for s in collector.streams if s.table == "host.process"]
    peak = max(struct.unpack_from("<Q", row, 104)[0] for row in stream.rows().values())
    assert 200 << 20 < peak < 400 << 20


def test_children_that_do_not_record_are_counted_and_named(place):
    done = place.run("--no-summary", "--", "sh", "-c", "sleep 1.5 & sleep 1.4; wait; true")
    assert "2 children were not recorded: sleep (pid " in done.stderr.decode()
    assert run_file(only_recording(place))["not_recorded"] == 2


def test_kymo_off_wins(place):
    done = place.run("--", prog("run_rows"), "10", env={"KYMO": "off"})
    assert (done.returncode, done.stdout) == (0, b"10\n")
    assert done.stderr.decode() == "kymo: nothing is recorded: KYMO=off is set in the environment\n"
    assert not list(place.path.glob("kymo-*"))


def test_a_run_inside_a_run_has_a_recording_of_its_own(place):
    done = place.run("-q", "-o", "outer", "--", KYMO, "run", "-q", "-o", "inner", "--", prog("run_rows"), "100")
    assert done.returncode == 0
    assert sum(s.emitted_rows for s in zone_streams(place.path / "inner")) == 100
    assert not zone_streams(place.path / "outer")


# --- what kymo says --------------------------------------------------------------------------------------------

def test_the_first_line_says_how_it_ended_and_where_it_is(place):
    done = place.run("--no-summary", "-o", "there", "--", prog("run_end"), "exit")
    assert done.stdout == b"inside\n"
    assert re.fullmatch(r"kymo: \S*run_end exit ended with 8 after [0-9.]+ m?s; recording there\n", done.stderr.decode())


def test_the_first_screen_fits_80_columns_also_with_a_long_path(place):
    """The path is on a line of its own, whole, so that it can be copied; all other lines fit."""
    there = place.path / ("a_long_directory_name_" * 3) / "recording"
    there.parent.mkdir()
    script = there.parent / "a_script_with_a_rather_long_name.py"
    script.write_text("import os, signal, time\n"
                      "def a_function_with_a_rather_long_name():\n    time.sleep(0.4)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
                      "a_function_with_a_rather_long_name()\n")
    done = place.run("-o", there, "--", sys.executable, script)
    lines = done.stderr.decode().splitlines()
    assert re.fullmatch(r"kymo: \S+ was killed by SIGKILL after [0-9.]+ m?s; recording", lines[0]), lines
    assert lines[1] == f"  {there}"
    assert len(lines) <= 24 and max(len(line) for line in lines[:1] + lines[2:]) <= 80, done.stderr.decode()


def test_a_signal_is_named(place):
    done = place.run("--no-summary", "-o", "there", "--", prog("run_end"), "kill")
    assert done.returncode == -signal.SIGKILL
    assert re.fullmatch(r"kymo: \S*run_end kill was killed by SIGKILL after [0-9.]+ m?s; recording there\n", done.stderr.decode())


def test_a_program_too_short_for_a_sample_gets_one_honest_line(place):
    done = place.run("-o", "there", "--", "true")
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 3 and lines[0].startswith("kymo: true ended with 0 after ")
    assert re.fullmatch(r"  Too short to judge: no stack was sampled in [0-9.]+ m?s\.", lines[1])
    assert lines[2] == "  next: kymo query 'FROM host.process'"
    assert "import kymo" not in done.stderr.decode() and "#include" not in done.stderr.decode()


@pytest.mark.parametrize("words, env", [(["-q"], {}), ([], {"KYMO_QUIET": "1"})])
def test_quiet_is_silent(place, words, env):
    done = place.run(*words, "--", prog("run_rows"), "10", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"10\n", b"")


def test_control_bytes_of_an_argument_do_not_reach_the_terminal(place):
    done = place.run("--no-summary", "--", "true", "\x1b[31m\nred")
    assert b"\x1b" not in done.stderr and done.stderr.count(b"\n") == 1


def test_it_adds_less_than_50_ms(place):
    def took(words):
        start = time.monotonic()
        subprocess.run(words, cwd=place.path, env=place.env, stdin=subprocess.DEVNULL)
        return time.monotonic() - start
    # The best of many: the machine may be busy with other things.
    plain = min(took(["true"]) for _ in range(15))
    assert min(took([KYMO, "run", "-q", "--", "true"]) for _ in range(15)) - plain < 0.05
