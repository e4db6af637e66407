"""kymo backtrace --native: C and Python in their true order, and nothing is ever left stopped."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import KYMO, PYTHONS, backtrace, each_python, kymo, one, until

SORT = """
    import sys, ctypes
    def compare(a, b):
        print("ready", flush=True)
        sys.stdin.readline()
        return 0
    def outer():
        array = (ctypes.c_int * 2)(2, 1)
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        ctypes.CDLL(None).qsort(array, 2, 4, kind(compare))
    outer()
"""


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def states(pid):
    """Of all its threads."""
    return [task.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0]
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir()]


def has_no_signal_pending(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return all(f"{word}:\t0000000000000000" in text for word in ("SigPnd", "ShdPnd"))


def native(pid):
    """Once in a while a thread cannot be stopped in time on a busy machine: asked again."""
    return until(lambda: next((t for t in backtrace("--native", pid)
                               if any(f["frame_type"] == "Native" for f in t["frames"])), None))


def libdw():
    try:
        import ctypes
        ctypes.CDLL("libdw.so.1")
    except OSError:
        return False
    return True


needs_libdw = pytest.mark.skipif(not libdw(), reason="libdw.so.1 is not there")


def has_no_name_for_its_loop(python):
    """Since 3.14 the loop may be many functions, which a stripped Python does not name."""
    symbols = subprocess.run(["nm", pathlib.Path(python).resolve()], capture_output=True, text=True, check=False)
    return PYTHONS[python] >= (3, 14) and "_PyEval_EvalFrameDefault" not in symbols.stdout


@needs_libdw
@each_python
def test_c_that_calls_python_is_between_the_python_frames(start, python):
    program = start(python, SORT)
    frames = native(program.pid)["frames"]
    names = [frame["func"] for frame in frames]
    assert [f["func"] for f in frames if f["frame_type"] == "Python"] == ["compare", "outer", "<module>"]
    if has_no_name_for_its_loop(python):
        assert names[-3:] == ["compare", "outer", "<module>"]
        return
    between = names[names.index("compare"):names.index("outer")]
    assert any(name.startswith("qsort") for name in between)
    assert names[0] == "read" or "read" in names[:4]
    assert not any(name.startswith("_PyEval_EvalFrameDefault") for name in names)


@needs_libdw
def test_cpp_names_are_readable_and_stripped_ones_are_module_and_offset(tmp_path):
    if not shutil.which("c++"):
        pytest.skip("no C++ compiler")
    source = tmp_path / "program.cpp"
    source.write_text("""
        #include <unistd.h>
        #include <vector>
        namespace shop { template <class T> struct Till {
            static __attribute__((noinline)) long wait(std::vector<T> v) { char c; long n = read(0, &c, 1); return n + v.size(); }
        }; }
        int main() { write(1, "ready\\n", 6); return (int)shop::Till<int>::wait({1, 2}) & 1; }
    """)
    plain, stripped = tmp_path / "plain", tmp_path / "stripped"
    subprocess.run(["c++", "-O1", "-o", plain, source], check=True, capture_output=True)
    subprocess.run(["strip", "-s", "-o", stripped, plain], check=True)
    for program, wanted in ((plain, "shop::Till<int>::wait(std::vector<int, std::allocator<int> >)"),
                            (stripped, "stripped+0x")):
        child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout.readline() == "ready\n"
            assert until(lambda: any(frame["func"].startswith(wanted) for frame in native(child.pid)["frames"])), native(child.pid)
        finally:
            child.kill()
            child.wait()


@needs_libdw
@pytest.mark.parametrize("debug", ["-g", "-g0"])
def test_frames_of_c_have_their_lines_where_the_program_knows_them(tmp_path, debug):
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text("""#include <unistd.h>
        static int waits(void) {
            char c;
            return (int)read(0, &c, 1); }
        int main(void) { write(1, "ready\\n", 6);
            return waits() + 1; }
    """)
    subprocess.run(["cc", "-w", debug, "-O0", "-o", program, source], check=True)
    child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        wanted = {"waits": (str(source), 4), "main": (str(source), 6)}
        if debug == "-g0":
            wanted = {"waits": (str(program), None), "main": (str(program), None)}
        def ask():
            return {f["func"]: (f["file"], f["lineno"]) for f in native(child.pid)["frames"] if f["func"] in wanted}
        until(lambda: ask() == wanted)
        assert ask() == wanted
    finally:
        child.kill()
        child.wait()


@needs_libdw
def test_signals_that_arrive_meanwhile_are_not_lost(start):
    program = start(sys.executable, """
        import signal, sys, time
        count = 0
        def on(number, frame):
            global count
            count += 1
        signal.signal(signal.SIGUSR1, on)
        print("ready", flush=True)
        while count < 200:
            time.sleep(0.001)
        print("all", flush=True)
    """)
    sent = 0
    while sent < 200:
        looking = subprocess.Popen([KYMO, "backtrace", "--native", str(program.pid)], stdout=subprocess.DEVNULL)
        while looking.poll() is None and sent < 200:
            os.kill(program.pid, signal.SIGUSR1)
            sent += 1
            # One at a time: signals of one number that are pending together become one.
            until(lambda: has_no_signal_pending(program.pid), 5)
            time.sleep(0.003)
        looking.wait()
    assert program.child.stdout.readline() == "all\n"


@needs_libdw
def test_killed_at_any_moment_it_leaves_nothing_stopped(start):
    """A tracer's death lets the thread go on: 60 kills at growing delays."""
    program = start(sys.executable, """
        import threading, time
        def work():
            while True: time.sleep(0.0005)
        for _ in range(8): threading.Thread(target=work, daemon=True).start()
        print("ready", flush=True)
        work()
    """)
    for n in range(60):
        looking = subprocess.Popen([KYMO, "backtrace", "--native", str(program.pid)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(n * 0.0005)
        looking.kill()
        looking.wait()
        assert until(lambda: all(word not in "Tt" for word in states(program.pid)), 10)
        assert "TracerPid:\t0" in pathlib.Path(f"/proc/{program.pid}/status").read_text()
    assert program.child.poll() is None


@needs_libdw
def test_a_stopped_program_stays_stopped_and_goes_on_when_told(start):
    program = start(sys.executable, "import sys; print('ready', flush=True); sys.stdin.readline(); print('on')")
    os.kill(program.pid, signal.SIGSTOP)
    until(lambda: state(program.pid) == "T")
    assert one(backtrace("--native", program.pid), "MainThread")["frames"]
    assert until(lambda: state(program.pid) == "T")
    os.kill(program.pid, signal.SIGCONT)
    assert program.say("go") == "on"


def test_a_program_under_a_debugger_is_said_to_be_so(start):
    if not shutil.which("strace"):
        pytest.skip("no strace to hold it with")
    program = start(sys.executable, "import sys; print('ready', flush=True); sys.stdin.readline()")
    holder = subprocess.Popen(["strace", "-o", "/dev/null", "-p", str(program.pid)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: "TracerPid:\t0" not in pathlib.Path(f"/proc/{program.pid}/status").read_text())
        out = kymo("backtrace", "--native", program.pid).stdout
        assert "another debugger or strace is attached" in out and "<module>" in out
    finally:
        holder.kill()
        holder.wait()


@needs_libdw
def test_every_thread_runs_on_when_it_has_been_read(start):
    program = start(sys.executable, """
        import sys, threading
        for n in range(20): threading.Thread(target=threading.Event().wait, daemon=True).start()
        print("ready", flush=True)
        while True: print(sys.stdin.readline().strip(), flush=True)
    """)
    threads = backtrace("--native", program.pid)
    assert len(threads) == 21 == len(states(program.pid))
    assert any(thread["held_ns"] > 0 for thread in threads)
    assert not set(states(program.pid)) & set("Tt")
    assert program.say("still here") == "still here"
    assert {thread["held_ns"] for thread in backtrace(program.pid)} == {0}, "without --native nothing is held"


VFORK = r"""
    #include <stdio.h>
    #include <unistd.h>
    int main(void)
    {
        char c;
        if (!vfork()) { /* until it ends, the parent cannot be interrupted */
            write(1, "ready\n", 6);
            read(0, &c, 1);
            _exit(0);
        }
        write(1, "on\n", 3);
        read(0, &c, 1);
        return 0;
    }
"""


@pytest.fixture
def uninterruptible(tmp_path):
    """A program whose only thread is in state D until it is told to go on."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    source, program = tmp_path / "vfork.c", tmp_path / "vfork"
    source.write_text(VFORK)
    subprocess.run(["cc", "-w", "-o", program, source], check=True)
    child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    assert until(lambda: state(child.pid) == "D")
    yield child
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()


def goes_on(child):
    """It does not stop, not even late, when what it waited for has come."""
    child.stdin.write("x")
    child.stdin.flush()
    assert child.stdout.readline() == "on\n"
    assert until(lambda: state(child.pid) == "S")
    assert "TracerPid:\t0" in pathlib.Path(f"/proc/{child.pid}/status").read_text()


@needs_libdw
def test_a_thread_that_cannot_be_interrupted_is_given_up_and_not_stopped_later(uninterruptible):
    thread, = backtrace("--native", uninterruptible.pid)
    assert (thread["state"], thread["frames"], thread["held_ns"]) == ("D", [], 0)
    goes_on(uninterruptible)


@needs_libdw
def test_killed_while_it_waits_for_such_a_thread_it_leaves_nothing_behind(uninterruptible):
    looking = subprocess.Popen([KYMO, "backtrace", "--native", str(uninterruptible.pid)], stdout=subprocess.DEVNULL)
    status = pathlib.Path(f"/proc/{uninterruptible.pid}/status")
    until(lambda: "TracerPid:\t0" not in status.read_text() or looking.poll() is not None)
    looking.kill()
    looking.wait()
    goes_on(uninterruptible)
