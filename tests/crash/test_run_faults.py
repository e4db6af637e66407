"""`kymo run` when things go wrong: for the program, for kymo, for the disk. Numbers are those of the list of faults."""
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest

from mounts import CAN_MOUNT, UNSHARE

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from run_tools import BUILD, KYMO, Place, only_recording, processes, prog, run_file, zone_streams  # noqa: E402


@pytest.fixture
def place():
    place = Place()
    yield place
    place.remove()


def wait_until(condition, seconds=20):
    for _ in range(int(seconds * 100)):
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("did not happen")


def target_of(place):
    def known():
        found = list(place.path.glob("kymo-*/run")) + list(place.path.glob("there/run"))
        return found and run_file(found[0].parent)["target"]
    return wait_until(known)


# --- 3, 4: the program ends inside an open zone -----------------------------------------------------------------

@pytest.mark.parametrize("how, status, output", [
    ("segv", -signal.SIGSEGV, b"inside\nown handler\n"),
    ("abort", -signal.SIGABRT, b"inside\n"),
    ("kill", -signal.SIGKILL, b"inside\n"),
    ("_exit", 7, b"inside\n"),
    ("exit", 8, b"inside\n"),
])
def test_the_open_zone_is_shown_as_open(place, how, status, output):
    done = place.run("-q", "--", prog("run_end"), how)
    assert (done.returncode, done.stdout) == (status, output)
    process, = processes(only_recording(place))
    stream, = process.streams
    assert (stream.emitted_rows, stream.kept()) == (10, 10)
    assert stream.open_depth == 1
    assert process.wstatus_known == 1 and os.waitstatus_to_exitcode(process.wstatus) == status


def test_exec_begins_a_second_life_and_keeps_the_first(place):
    done = place.run("-q", "--", prog("run_end"), "exec")
    assert (done.returncode, done.stdout) == (8, b"inside\ninside\n")
    lives = processes(only_recording(place))
    assert len(lives) == 2 and lives[0].pid == lives[1].pid
    assert [life.streams[0].kept() for life in lives] == [10, 10]
    assert [life.streams[0].open_depth for life in lives] == [1, 1]
    assert sorted(life.wstatus_known for life in lives) == [0, 1]


# --- 5, 6: children ---------------------------------------------------------------------------------------------

def test_200_short_lived_workers_are_all_recorded_and_descriptors_stay_flat(place):
    kymo = place.popen("-q", "--", prog("run_workers"), "200", "10", stdout=subprocess.PIPE)
    most = 0
    while kymo.poll() is None:
        try:
            most = max(most, len(os.listdir(f"/proc/{kymo.pid}/fd")))
        except FileNotFoundError:
            break
        time.sleep(0.02)
    out = kymo.stdout.read().split()
    assert kymo.wait(30) == 0
    streams = zone_streams(only_recording(place))
    workers, parent = int(out[0]), int(out[1])
    assert workers == 2000
    assert sum(s.emitted_rows for s in streams) == sum(s.kept() for s in streams) == workers + parent
    assert len(processes(only_recording(place))) == 201
    assert not place.live_runs()
    assert most < 300  # one for each process that runs or has ended within the last second


def test_a_child_that_runs_on_keeps_its_live_half(place):
    done = place.run("--no-summary", "-o", "there", "--", prog("run_workers"), "2", "5", "stay")
    assert done.returncode == 0
    assert re.search(r"Child \d+ is still running; its data stays in ", done.stderr.decode())
    live, = place.live_runs()
    assert run_file(place.path / "there")["peer"] == os.path.realpath(live)
    assert run_file(live)["peer"] == os.path.realpath(place.path / "there")
    assert sum(s.emitted_rows for s in zone_streams(live, place.path / "there")) >= 10
    assert len(processes(live, place.path / "there")) == 4


# --- death of either side ----------------------------------------------------------------------------------------

def test_what_was_committed_before_sigkill_is_kept(place):
    kymo = place.popen("-q", "--", prog("run_rows"), "100000000", "1000", stdout=subprocess.DEVNULL)
    target = target_of(place)
    time.sleep(0.8)
    os.kill(target, signal.SIGKILL)
    assert kymo.wait(20) == -signal.SIGKILL
    stream, = zone_streams(only_recording(place))
    assert stream.emitted_rows > 100000 and stream.kept() == stream.emitted_rows
    assert not place.live_runs()


def test_kymo_killed_at_any_moment_loses_nothing_and_the_program_does_not_notice(place):
    """9. Several kills, each in the middle of moving; the two halves together hold every row, and none is different in both."""
    dice = random.Random(1)
    for attempt in range(8):
        there = place.path / f"there{attempt}"
        kymo = place.popen("-q", "-o", str(there), "--", prog("run_rows"), "2000000", "2000", stdout=subprocess.PIPE)
        # The file exists for an instant before it has its content.
        wait_until(lambda: (there / "run").exists() and (there / "run").stat().st_size and
                   (there / "run").read_bytes()[:7] == b"KYMORUN" and run_file(there)["target"])
        time.sleep(0.1 + dice.random() * 0.6)
        kymo.kill()
        kymo.wait()
        assert int(kymo.stdout.read()) == 2000000  # the program went on to its end
        live = run_file(there)["peer"]
        wait_until(lambda: processes(live, there)[0].ended)
        stream, = zone_streams(live, there)
        assert (stream.emitted_rows, stream.kept(), stream.dropped) == (2000000, 2000000, 0)
        for part in pathlib.Path(there).glob("p*/.*"):
            part.unlink()  # a copy that was under way: hidden, and nobody reads it
        for segment in pathlib.Path(there).glob(f"p*/s{stream.id}.[0-9]*"):
            twin = pathlib.Path(live) / segment.relative_to(there)
            assert not twin.exists() or twin.read_bytes() == segment.read_bytes()
        shutil.rmtree(live)


def test_the_programs_system_calls_are_not_interrupted(place):
    """12."""
    kymo = place.popen("-q", "--", prog("run_signals"), stdout=subprocess.PIPE, text=True, env={"KYMO_SYSTEM_RATE": "0.05"})
    assert kymo.stdout.readline() == "ready\n"
    time.sleep(1.5)
    kymo.terminate()
    assert kymo.stdout.read() == "TERM\n"
    assert kymo.wait(10) == 0


# --- a program that damages its own files ------------------------------------------------------------------------

@pytest.mark.parametrize("how", ["truncate", "unlink", "claim"])
def test_a_program_that_damages_its_files_harms_nobody(place, how):
    done = place.run("--no-summary", "--", prog("run_hostile"), how, seconds=30)
    assert (done.returncode, done.stdout) == (3, b"done\n")


# --- 13, 15, 16: no room ------------------------------------------------------------------------------------------

def mounted(place, size, script):
    """Runs a shell script in which $small is a tmpfs of that size that nobody else sees."""
    small = place.path / "small"
    small.mkdir(exist_ok=True)
    words = [*UNSHARE, "sh", "-c", f"mount -t tmpfs -o size={size},mode=700 none {small} && small={small} && {script}"]
    return subprocess.run(words, cwd=place.path, env=place.env, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)


needs_mount = pytest.mark.skipif(not CAN_MOUNT, reason="mounting a small tmpfs needs root (unshare -m, mount)")


@needs_mount
def test_a_live_half_of_4_mb_loses_rows_and_counts_them(place):
    """13."""
    done = mounted(place, "4m", f"KYMO_DIR=$small/live {KYMO} run --no-summary -o there -- {prog('run_rows')} 3000000; echo $?")
    assert done.stdout.split() == [b"3000000", b"0"], done.stderr
    stream, = zone_streams(place.path / "there")
    assert stream.emitted_rows + stream.dropped == 3000000
    assert 0 < stream.kept() <= stream.emitted_rows
    # The last row of a program that had room again is there.
    assert max(stream.rows()) == stream.emitted_rows - 1


@needs_mount
def test_a_disk_that_is_full_leaves_no_half_file_and_the_rest_in_memory(place):
    """16."""
    script = (f"{KYMO} run --no-summary -o $small/there -- {prog('run_rows')} 1000000 500; echo $?; "
              f"cp -r $small/there {place.path}/copy; find $small -name '.*part' | wc -l")
    done = mounted(place, "8m", script)
    assert done.stdout.split() == [b"1000000", b"0", b"0"], done.stderr
    said = done.stderr.decode()
    assert said.count("cannot move rows to the recording on disk: No space left on device") == 1
    assert "cannot move all data to the disk (No space left on device): the rest stays in " in said
    live, = place.live_runs()
    stream, = zone_streams(live, place.path / "copy")
    assert (stream.emitted_rows, stream.kept(), stream.dropped) == (1000000, 1000000, 0)


GROWS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
kept = None
while True:
    kept = [kept, bytes(int(sys.argv[1]))]
"""

FILLS = """
import os, sys, kymo
kymo.mark("begun")
free = os.statvfs(sys.argv[1])
with open(sys.argv[1] + "/filler", "wb") as file:
    file.write(bytes(free.f_bavail * free.f_frsize - (512 << 10)))
raise ValueError("the tmpfs is full")
"""


def exception_of(place):
    done = subprocess.run([KYMO, "query", "-f", "json", "there", "SELECT text FROM trace.marks WHERE name = 'uncaught exception'"],
                          cwd=place.path, env=place.env, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


@pytest.mark.parametrize("size", [100, 1000, 10000, 100000, 1000000, 10000000])
def test_a_python_that_ran_out_of_addresses_records_its_exception(place, size):
    """13. The traceback holds what has used up the memory, until the end."""
    done = place.run("--no-summary", "-o", "there", "--", sys.executable, "-c", GROWS, str(size))
    assert (done.returncode, b"MemoryError" in done.stderr) == (1, True), done.stderr
    assert "MemoryError" in exception_of(place)


@needs_mount
def test_a_python_that_fails_beside_a_full_tmpfs_records_its_exception(place):
    """13. At its end a program may use the part of the tmpfs that was left for it."""
    (place.path / "fills.py").write_text(FILLS)
    done = mounted(place, "16m", f"KYMO_DIR=$small/live PYTHONPATH={BUILD}/python {KYMO} run --no-summary -o there -- "
                                 f"{sys.executable} fills.py $small")
    assert b"ValueError: the tmpfs is full" in done.stderr, done.stderr
    assert "ValueError: the tmpfs is full (fills.py:" in exception_of(place)


LIMITS = {
    "files of 1 MB": (resource.RLIMIT_FSIZE, 1 << 20),
    "files of 4 kB": (resource.RLIMIT_FSIZE, 4096),
    "12 descriptors": (resource.RLIMIT_NOFILE, 12),
    "8 descriptors": (resource.RLIMIT_NOFILE, 8),
    "400 MB of address space": (resource.RLIMIT_AS, 400 << 20),
}


@pytest.mark.parametrize("name", LIMITS)
def test_low_limits_do_not_change_the_program(place, name):
    """15. Either it runs as it would, or kymo says that it cannot start, before there is anything to disturb."""
    what, value = LIMITS[name]
    done = place.run("--no-summary", "--", prog("run_rows"), "300000",
                     preexec_fn=lambda: resource.setrlimit(what, (value, value)))
    if done.returncode == 1:
        assert done.stdout == b"" and done.stderr.startswith(b"kymo run: cannot ")
    else:
        assert (done.returncode, done.stdout) == (0, b"300000\n"), done.stderr


def test_a_directory_that_is_read_only_does_not_keep_the_program_from_starting(place):
    (place.path / "fixed").mkdir(mode=0o500)
    if os.geteuid() == 0:
        done = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", KYMO, "run", "-o",
                               str(place.path / "fixed/there"), "--", "echo", "started"], capture_output=True,
                              env={**place.env, "KYMO_DIR": "/nonexistent"})
    else:
        done = place.run("-o", "fixed/there", "--", "echo", "started")
    assert (done.returncode, done.stdout) == (0, b"started\n"), done.stderr
    assert b"cannot create the recording " in done.stderr or b"nothing is recorded: " in done.stderr, done.stderr


@pytest.mark.parametrize("half", ["live", "disk"])
def test_a_half_that_is_deleted_in_mid_run_does_not_change_the_program(place, half):
    """15."""
    kymo = place.popen("--no-summary", "-o", "there", "--", prog("run_rows"), "1000000", "1000", stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    target_of(place)
    time.sleep(0.3)
    gone = place.live_runs()[0] if half == "live" else place.path / "there"
    wait_until(lambda: (shutil.rmtree(gone, ignore_errors=True), not gone.exists())[1])
    out, said = kymo.communicate(timeout=30)
    assert (kymo.returncode, out) == (0, b"1000000\n"), said


def test_kymo_costs_next_to_nothing_while_it_waits(place):
    kymo = place.popen("-q", "--", "sleep", "3")
    time.sleep(0.5)

    def cpu():
        with open(f"/proc/{kymo.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    before = cpu()
    time.sleep(2)
    spent = (cpu() - before) / os.sysconf("SC_CLK_TCK") / 2
    kymo.kill()
    kymo.wait()
    assert spent < 0.03
