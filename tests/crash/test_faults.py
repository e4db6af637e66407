"""Faults that need a process, a mount or a compiler of their own. Numbers are those of docs/reliability.md."""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import time

import pytest

from mounts import CAN_MOUNT, UNSHARE

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN") or ROOT / "build/kymo").resolve()
BUILD = KYMO.parent
PROGS = BUILD / "tests/progs"
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


class Place:
    """A directory for all that a test writes, in memory where possible; what it starts ends with it."""

    def __init__(self):
        shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="kymo-fault-test-", dir=shm))
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith("KYMO")}, "KYMO_QUIET": "1",
                    "KYMO_DIR": str(self.path / "live"), "XDG_STATE_HOME": str(self.path / "state"), "LC_ALL": "C.UTF-8"}
        self.started = []

    def start(self, *words, env=None, **options):
        child = subprocess.Popen([str(w) for w in words], cwd=self.path, env={**self.env, **(env or {})},
                                 stdin=subprocess.DEVNULL, preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
                                 **options)
        self.started.append(child)
        return child

    def run(self, *words, env=None, seconds=60):
        child = self.start(*words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child.out, child.err = child.communicate(timeout=seconds)
        return child

    def record(self, *words, env=None):
        """The program records by itself, without a supervisor; its one recording."""
        done = self.run(*words, env={"KYMO": "on", **(env or {})})
        assert done.returncode == 0, done.err
        run, = (self.path / "live").iterdir()
        return done, run

    def query(self, target, sql):
        done = self.run(KYMO, "query", "-f", "json", target, sql)
        assert done.returncode == 0, done.err
        return json.loads(done.out)

    def remove(self):
        for child in self.started:
            if child.poll() is None:
                child.kill()
                child.wait()
        shutil.rmtree(self.path, ignore_errors=True)


@pytest.fixture
def place():
    place = Place()
    yield place
    place.remove()


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.005)
    raise AssertionError(f"did not happen within {seconds} s")


def mounts(script):
    return shutil.which("unshare") and subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True).returncode == 0


needs_mount = pytest.mark.skipif(not CAN_MOUNT, reason="mounting a small tmpfs needs root (unshare -m, mount)")


def with_small(place, size, script):
    """Runs a shell script in which $small is a tmpfs of that size that nobody else sees."""
    small = place.path / "small"
    small.mkdir(exist_ok=True)
    return place.run(*UNSHARE, "sh", "-c",
                     f"mount -t tmpfs -o size={size},mode=700 none {small} && small={small}\n{script}")


# --- 8: the library that owns a name is unloaded -------------------------------------------------------------------

PLUGIN = """
#include <kymo/kymo.h>
void plugin_work(void);
void plugin_work(void)
{
	static struct kymo_region region = KYMO_REGION_INIT("region of %(n)d");
	KYMO_SCOPE("scope of %(n)d");
	kymo_region_start(&region);
	kymo_mark("mark of %(n)d", "text of %(n)d");
	kymo_counter("counter of %(n)d", %(n)d);
	kymo_region_stop(&region);
}
"""


def compile_plugin(place, number):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("no C compiler to make a library that can be unloaded")
    source, library = place.path / f"plugin{number}.c", place.path / f"plugin{number}.so"
    source.write_text(PLUGIN % {"n": number})
    made = place.run(compiler, "-shared", "-fPIC", "-O1", f"-I{ROOT}/include", "-o", library, source)
    assert made.returncode == 0, made.err
    return library


def test_names_of_a_library_that_is_gone_still_resolve(place):
    libraries = [compile_plugin(place, n) for n in (1, 2)]
    done, run = place.record(PROGS / "fault_dlclose", *libraries, libraries[0])
    assert done.out == "gone\n" * 3
    rows = place.query(run, "SELECT name, count(*) AS n FROM trace.zones GROUP BY name ORDER BY name")
    assert {r["name"]: r["n"] for r in rows} == {"load": 3, "region of 1": 20, "region of 2": 10, "scope of 1": 20,
                                                "scope of 2": 10}
    rows = place.query(run, "SELECT name, count(*) AS n FROM trace.counters GROUP BY name ORDER BY name")
    assert {r["name"]: r["n"] for r in rows} == {"counter of 1": 20, "counter of 2": 10}


def test_libkymo_itself_stays_when_it_is_closed(place):
    """A thread that has recorded ends after dlclose(): what runs at its end must still be there."""
    code = textwrap.dedent(f"""
        import ctypes, _ctypes, threading
        kymo = ctypes.CDLL("{BUILD}/libkymo.so")
        assert kymo.kymo_enable(None) == 0
        recorded, closed = threading.Event(), threading.Event()
        def work():
            kymo.kymo_mark(b"mark", b"text")
            recorded.set()
            closed.wait()
        thread = threading.Thread(target=work)
        thread.start()
        recorded.wait()
        _ctypes.dlclose(kymo._handle)
        closed.set()
        thread.join()
        import os
        if os.fork() == 0:
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """)
    done = place.run(sys.executable, "-c", code)
    assert (done.returncode, done.out, done.err) == (0, "0\n", "")


# --- 13: a small tmpfs, without a supervisor ------------------------------------------------------------------------

@needs_mount
def test_a_tmpfs_of_4_mb_that_fills_up_costs_rows_that_are_counted_and_nothing_else(place):
    script = (f"KYMO=on KYMO_DIR=$small/live {PROGS}/fault_room $small/all || exit 1\n"
              f"cp -r $small/live {place.path}/copy")
    done = with_small(place, "4m", script)
    assert done.returncode == 0 and done.err == "", done.err
    run, = (place.path / "copy").iterdir()
    counts, = place.query(run, "SELECT sum(emitted) AS emitted, sum(kept + overwritten + dropped) AS rest, sum(dropped) AS dropped "
                               "FROM kymo.streams WHERE table_name = 'trace.zones'")
    assert counts["emitted"] == counts["rest"] == int(done.out)
    assert counts["dropped"] > 10000
    kept = {r["name"]: r["n"] for r in place.query(run, "SELECT name, count(*) AS n FROM trace.zones GROUP BY name")}
    assert kept["before"] == 500 and kept["after"] > 0 and kept["of a thread"] >= 20


# --- 15: directories, for a program that records by itself -----------------------------------------------------------

def directory_that_is(place, what):
    path = place.path / "given"
    path.mkdir(mode=0o700)
    if what == "open to all":
        path.chmod(0o777)
    elif what == "a link":
        path.rename(place.path / "real")
        path.symlink_to(place.path / "real")
    elif what == "a file":
        path.rmdir()
        path.write_text("precious")
    elif what == "below a file":
        (path / "file").write_text("precious")
        path = path / "file/live"
    return path


@pytest.mark.parametrize("what, why", [
    ("open to all", "is accessible to other users (mode 777); run `chmod 700 "),
    ("a link", "is not a directory (a symbolic link is not followed); remove it or set KYMO_DIR"),
    ("a file", "is not a directory"),
    ("below a file", "Not a directory"),
])
def test_a_directory_that_is_refused_is_said_in_one_line_and_the_program_runs(place, what, why):
    path = directory_that_is(place, what)
    done = place.run(PROGS / "run_rows", "1000", env={"KYMO": "on", "KYMO_DIR": str(path)})
    assert (done.returncode, done.out) == (0, "1000\n")
    assert done.err.startswith("kymo: ") and why in done.err and done.err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv, to be somebody else")
@pytest.mark.parametrize("mode, why", [(0o755, "belongs to user 0, not to you (65534)"), (0o700, "")])
def test_a_directory_of_somebody_else_is_refused(place, mode, why):
    place.path.chmod(0o755)
    (place.path / "given").mkdir()
    (place.path / "given").chmod(mode)
    program = shutil.copy(PROGS / "run_rows", place.path)
    done = place.run("setpriv", "--reuid", "65534", "--clear-groups", "--inh-caps=-all", program, "1000",
                     env={"KYMO": "on", "KYMO_DIR": str(place.path / "given"), "LD_LIBRARY_PATH": str(BUILD)})
    if "error while loading shared libraries" in done.err:
        pytest.skip("the build folder is closed to other users")
    assert (done.returncode, done.out) == (0, "1000\n"), done.err
    assert done.err.startswith("kymo: ") and why in done.err and done.err.count("\n") == 1


@needs_mount
def test_a_file_system_that_is_read_only_is_said_in_one_line_and_the_program_runs(place):
    done = with_small(place, "4m", f"mount -o remount,ro $small && KYMO=on KYMO_DIR=$small/live {PROGS}/run_rows 1000")
    assert (done.returncode, done.out) == (0, "1000\n")
    assert done.err.startswith("kymo: cannot create the directory ") and "Read-only file system" in done.err
    assert done.err.count("\n") == 1


# --- 16: the disk is full ------------------------------------------------------------------------------------------

WRITERS = {
    "pack": "pack --force {run} {file}",
    "snapshot": "snapshot --force {run} {file}",
    "query csv": "query --force -f csv -o {file} {run} 'FROM trace.zones'",
    "query json": "query --force -f json -o {file} {run} 'FROM trace.zones'",
    "query arrow": "query --force -f arrow -o {file} {run} 'FROM trace.zones'",
    "query parquet": "query --force -f parquet -o {file} {run} 'FROM trace.zones'",
    "report html": "report --force -f html -o {file} {run}",
}


@needs_mount
@pytest.mark.parametrize("command", WRITERS)
def test_a_full_disk_is_a_clear_error_and_the_old_file_stays(place, command):
    _, run = place.record(PROGS / "run_rows", "11000")
    words = WRITERS[command].format(run=run, file="$small/out")
    done = with_small(place, "16k", f"echo old > $small/out; {KYMO} {words}; echo $?; cat $small/out; ls -A $small")
    assert done.out == "1\nold\nout\n", done.err
    assert done.err.startswith(f"kymo {command.split()[0]}: ") and "No space left on device" in done.err, done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("command", WRITERS)
def test_killed_while_it_writes_it_leaves_the_old_file_or_a_whole_new_one(place, command):
    """At several moments; what it was writing is beside the file, under another name."""
    _, run = place.record(PROGS / "run_rows", "11000")
    words = WRITERS[command].format(run=run, file="out")
    out = place.path / "out"
    assert place.run("sh", "-c", f"{KYMO} {words}").returncode == 0
    whole = out.stat().st_size
    for ms in (10, 25, 50, 80, 120):
        out.write_text("old\n")
        child = place.start("sh", "-c", f"exec {KYMO} {words}", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(ms / 1000)
        child.kill()
        child.wait()
        if out.read_bytes() == b"old\n":
            continue
        if command in ("pack", "snapshot"):
            assert place.query("out", "SELECT count(*) AS n FROM trace.zones") == [{"n": 11000}]
        else:
            # Digits may differ: the clock of a program that lived for a moment is calibrated when it is read.
            assert abs(out.stat().st_size - whole) <= whole // 50


# --- 17: what a reader can do to a writer ---------------------------------------------------------------------------

def held_by(pid, run):
    """(path, flags, locked) of every file of the run that a process has open."""
    found = []
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            path = os.readlink(fd)
            info = pathlib.Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text()
        except OSError:
            continue
        if path.startswith(str(run)):
            flags = int(next(line.split()[1] for line in info.splitlines() if line.startswith("flags:")), 8)
            found.append((path, flags, "lock:" in info))
    return found


def test_a_reader_that_is_stopped_shares_no_lock_and_no_writable_byte_with_the_writer(place):
    writer = place.start(PROGS / "run_rows", "2000000000", env={"KYMO": "on", "KYMO_KEEP": "all", "KYMO_BUDGET": "64M"},
                         stdout=subprocess.DEVNULL)
    live = place.path / "live"
    wait_until(lambda: live.exists() and list(live.glob("*/p*/s0.[1-9]*")))
    run, = live.iterdir()
    reader = place.start(KYMO, "query", "--timeout", "60", run,
                         "SELECT count(*) FROM trace.zones a, range(100000000) b WHERE a.start_ns % 7 = b.range % 5",
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    # The command reads in a child of its own.
    child = int(wait_until(lambda: pathlib.Path(f"/proc/{reader.pid}/task/{reader.pid}/children").read_text().split())[0])
    held = wait_until(lambda: [h for h in held_by(child, run) if ".head" not in h[0]])
    os.kill(child, signal.SIGSTOP)
    wait_until(lambda: pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
    assert all(flags & os.O_ACCMODE == os.O_RDONLY and not locked for _, flags, locked in held), held
    maps = pathlib.Path(f"/proc/{child}/maps").read_text()
    assert not [line for line in maps.splitlines() if str(run) in line and "w" in line.split()[1]]
    # And the writer goes through its whole budget of memory, twice, meanwhile.
    head = next(run.glob("p*/s0.head"))

    def written():
        with open(head, "rb") as file:
            file.seek(4096)
            return struct.unpack("<Q", file.read(8))[0]
    before = written()
    wait_until(lambda: written() > before + 2 * (64 << 20) // 32)
    assert writer.poll() is None


# --- 21: the kernel does not trust the counter --------------------------------------------------------------------

CLOCKSOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


@pytest.mark.skipif(not os.path.exists(CLOCKSOURCE) or not mounts(f"mount --bind /etc/hostname {CLOCKSOURCE}"),
                    reason="needs root, to mount another word over the kernel's clock source")
@pytest.mark.parametrize("word", ["hpet", "acpi_pm", "jiffies"])
def test_where_the_kernel_distrusts_the_counter_its_clock_is_used_and_said(place, word):
    (place.path / "word").write_text(word + "\n")
    done = place.run(*UNSHARE, "sh", "-c",
                     f"mount --bind word {CLOCKSOURCE} && KYMO=on exec {PROGS}/run_rows 100")
    assert (done.returncode, done.out) == (0, "100\n"), done.err
    run, = (place.path / "live").iterdir()
    kind, = struct.unpack_from("<I", (run / "run").read_bytes(), 16)
    assert kind == 2  # KYMO_CLOCK_MONOTONIC of src/base/format.h
    row, = place.query(run, "SELECT count(*) AS n, bool_and(duration_ns >= 0 AND start_ns >= 0) AS sane FROM trace.zones")
    assert row == {"n": 100, "sane": True}


# --- 22: times that cannot be --------------------------------------------------------------------------------------

def test_impossible_times_go_through_every_command(place):
    _, run = place.record(PROGS / "fault_times")
    rows = place.query(run, "SELECT at_ns, took_ns FROM app.times")
    assert len(rows) == 25
    assert all(r["took_ns"] is None or r["took_ns"] >= 0 for r in rows)
    assert place.query(run, "SELECT name FROM trace.zones WHERE duration_ns > 0") == [{"name": "main"}]
    assert place.query(run, "SELECT count(*) AS n FROM trace.steps") == [{"n": 1}]
    for words in (["report", run], ["pack", run, "x.kymo"], ["report", "x.kymo"], ["snapshot", run, "x.ksnap"],
                  ["query", "-f", "parquet", "-o", "x.parquet", run, "FROM app.times"]):
        done = place.run(KYMO, *words)
        assert done.returncode == 0, (words, done.err)
    assert len(place.query("x.kymo", "SELECT at_ns, took_ns FROM app.times")) == 25
