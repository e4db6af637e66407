"""kymo backtrace --why: what a program that hangs is waiting for."""
import os
import re
import shutil
import subprocess
import sys
import textwrap

import pytest
from conftest import KYMO, backtrace, clean, each_python, kymo, one, until

HANG = """
    import os, queue, socket, subprocess, threading, time
    lock, rlock, event = threading.Lock(), threading.RLock(), threading.Event()
    def holder():
        with lock:
            with rlock:
                event.wait()
    def wants_lock():
        with lock: pass
    def wants_rlock():
        with rlock: pass
    def receives():
        listening = socket.create_server(("127.0.0.1", 0))
        socket.create_connection(listening.getsockname()).recv(1)
    def accepts(): socket.create_server(("127.0.0.1", 0)).accept()
    def reads():
        r, w = os.pipe()
        os.read(r, 1)
    def takes(): queue.Queue().get()
    def joins(): sleeper.join()
    def sleeps(): time.sleep(1000)
    sleeper = threading.Thread(target=sleeps, name="sleeps", daemon=True)
    sleeper.start()
    for f in (holder, wants_lock, wants_rlock, receives, accepts, reads, takes, joins):
        threading.Thread(target=f, name=f.__name__, daemon=True).start()
        time.sleep(0.1)
    print("ready", flush=True)
    time.sleep(1000)
"""


@each_python
def test_every_kind_of_wait_is_named(start, python):
    program = start(python, HANG)
    def ask():
        threads = {t["thread"]: t["why"] for t in backtrace("--why", program.pid)}
        return threads if len(threads) == 10 and "joins" in threads else None
    why = until(ask)
    held = re.escape(f'held by thread {one(backtrace(program.pid), "holder")["tid"]} "holder" (in holder)')
    for name, wanted in {
        "MainThread": r"sleeping \(time\.sleep\)",
        "holder": r"waits for an Event that is not set",
        "wants_lock": rf"waits for a Python lock {held}",
        "wants_rlock": r"waits for a Python RLock held by thread \d+ \"holder\"",
        "receives": r"waits to receive from a tcp socket, 127\.0\.0\.1:\d+ to 127\.0\.0\.1:\d+, established",
        "accepts": r"waits for (a connection on )?a tcp socket, 127\.0\.0\.1:\d+, listening",
        "reads": r"waits to read from a pipe \(descriptor \d+\)",
        "takes": r"waits for an item in an empty queue",
        "joins": r"waits for thread \d+ \"sleeps\" to end",
        "sleeps": r"sleeping \(time\.sleep\)",
    }.items():
        assert re.match(wanted, why[name]), (name, why[name])


DEADLOCK = """
    import threading
    a, b, met = threading.Lock(), threading.Lock(), threading.Barrier(2)
    def takes(first, second):
        with first:
            met.wait()
            with second: pass
    threading.Thread(target=takes, args=(a, b), name="left", daemon=True).start()
    right = threading.Thread(target=takes, args=(b, a), name="right", daemon=True)
    right.start()
    print("ready", flush=True)
    right.join()
"""


@each_python
def test_a_deadlock_is_called_one(start, python):
    program = start(python, DEADLOCK)
    lines = until(lambda: [line for line in kymo("backtrace", "--why", program.pid).stdout.splitlines()
                           if line.startswith("deadlock: ")])
    assert sorted(re.findall('"(left|right)" waits for', lines[0])) == ["left", "right"], lines


def test_a_deadlock_is_called_one_in_a_tree_and_who_waits_for_another_is_apart(start):
    program = start(sys.executable, DEADLOCK)
    text = until(lambda: out if "\ndeadlock: " in (out := kymo("backtrace", "--tree", "--why", program.pid).stdout) else None)
    tid = {t["thread"]: t["tid"] for t in backtrace(program.pid)}
    text = " ".join(text.split())
    assert "3 threads, 3 different stacks and reasons" in text
    for name, other in (("left", "right"), ("right", "left")):
        assert (f'1 thread: {program.pid}/{tid[name]} "{name}" waits for a Python lock held by '
                f'thread {tid[other]} "{other}"') in text


@each_python
def test_who_joins_a_thread_of_python_that_wants_its_lock_is_in_a_deadlock(start, python):
    program = start(python, """
        import threading
        lock = threading.Lock()
        def wants():
            with lock: pass
        def joins():
            with lock:
                thread = threading.Thread(target=wants, name="wants", daemon=True)
                thread.start()
                thread.join()
        threading.Thread(target=joins, name="joins", daemon=True).start()
        print("ready", flush=True)
        input()
    """)
    line = first_line_of_a_deadlock(program.pid)
    assert line and sorted(re.findall('"(joins|wants)" waits for', line)) == ["joins", "wants"]


@each_python
def test_nobody_who_only_waits_is_in_a_deadlock(start, python):
    program = start(python, HANG)
    assert "deadlock" not in kymo("backtrace", "--why", program.pid).stdout


@each_python
def test_who_waits_for_the_gil_and_who_has_it(start, python):
    program = start(python, """
        import threading
        def spin():
            while True: pass
        def other():
            while True: pass
        threading.Thread(target=other, name="other", daemon=True).start()
        print("ready", flush=True)
        spin()
    """)
    wanted = re.compile(r"waits for the GIL, held by thread \d+ \"(other|MainThread)\" \(in (other|spin)\)")
    assert until(lambda: any(wanted.match(t["why"]) for t in backtrace("--why", program.pid)))


@pytest.fixture
def c_program(tmp_path):
    """c_program(source): runs it until it says ready. Ended with the test."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    running = []

    def go(source):
        (tmp_path / "program.c").write_text("#include <pthread.h>\n#include <unistd.h>\n" + textwrap.dedent(source))
        subprocess.run(["cc", "-w", "-D_GNU_SOURCE", "-pthread", "-o", tmp_path / "program", tmp_path / "program.c"], check=True)
        child = subprocess.Popen([tmp_path / "program"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(child)
        assert child.stdout.readline() == "ready\n"
        return child.pid
    yield go
    for child in running:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


def test_a_mutex_of_c_names_its_owner(c_program):
    pid = c_program("""
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        static void *wants(void *p) { pthread_mutex_lock(&mutex); return p; }
        int main(void) { pthread_t t; char c; pthread_mutex_lock(&mutex); pthread_create(&t, 0, wants, 0);
            write(1, "ready\\n", 6); return (int)read(0, &c, 1); }
    """)
    wanted = f'waits for a mutex held by thread {pid} "program"'
    assert until(lambda: any(t["why"].startswith(wanted) for t in backtrace("--why", pid)))


def first_line_of_a_deadlock(pid):
    return until(lambda: next((line for line in kymo("backtrace", "--why", pid).stdout.splitlines()
                               if line.startswith("deadlock: ")), None))


def test_who_wants_a_mutex_that_it_holds_is_in_a_deadlock_with_itself(c_program):
    pid = c_program("""
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        int main(void) { pthread_mutex_lock(&mutex); write(1, "ready\\n", 6); return pthread_mutex_lock(&mutex); }
    """)
    assert first_line_of_a_deadlock(pid) == f'deadlock: thread {pid} "program" waits for a lock that it holds itself'
    (thread,) = backtrace("--why", pid)
    assert thread["why"].startswith("waits for a mutex that it holds itself") and thread["waits_for"] == pid


def test_who_joins_a_thread_that_wants_its_mutex_is_in_a_deadlock(c_program):
    pid = c_program("""
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        static void *wants(void *p) { pthread_setname_np(pthread_self(), "wants"); pthread_mutex_lock(&mutex); return p; }
        int main(void) { pthread_t t; pthread_mutex_lock(&mutex); pthread_create(&t, 0, wants, 0);
            write(1, "ready\\n", 6); return pthread_join(t, 0); }
    """)
    line = first_line_of_a_deadlock(pid)
    (tid,) = (t["tid"] for t in backtrace(pid) if t["tid"] != pid)
    assert line == (f'deadlock: thread {pid} "program" waits for thread {tid} "wants" waits for '
                    f'thread {pid} "program"')
    threads = backtrace("--why", pid)
    assert threads[0]["why"].startswith(f'waits for thread {tid} "wants" to end')
    assert {t["tid"]: t["waits_for"] for t in threads} == {pid: tid, tid: pid}


def test_in_a_tree_only_who_waits_for_the_same_is_together(c_program):
    pid = c_program("""
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        static void *wants(void *p) { pthread_setname_np(pthread_self(), "wants"); pthread_mutex_lock(&mutex); return p; }
        int main(void) { pthread_t t[2]; pthread_mutex_lock(&mutex);
            for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, wants, 0);
            write(1, "ready\\n", 6); return pthread_join(t[0], 0); }
    """)
    def settled():
        text = " ".join(kymo("backtrace", "--tree", "--why", pid).stdout.split())
        return text if text.count("1 thread:") == 1 and "2 threads:" in text and "deadlock: " in text else None
    text = until(settled)
    wants = [t["tid"] for t in backtrace(pid) if t["thread"] == "wants"]
    assert "1 process, 3 threads, 2 different stacks and reasons; smallest group first deadlock: thread" in text
    assert re.search(rf'1 thread: {pid}/{pid} "program" waits for thread ({wants[0]}|{wants[1]}) "wants" to end', text)
    assert re.search(rf'2 threads: {pid}/\d+ "wants", {pid}/\d+ "wants" waits for a mutex held by thread {pid} "program"', text)


def test_three_threads_that_join_each_other_are_in_a_deadlock(c_program):
    pid = c_program("""
        static pthread_t all[3];
        static pthread_barrier_t made;
        static void *joins(void *next) { pthread_barrier_wait(&made); pthread_join(*(pthread_t *)next, 0); return 0; }
        int main(void) { char c; pthread_barrier_init(&made, 0, 4);
            for (int i = 0; i < 3; i++) pthread_create(&all[i], 0, joins, &all[(i + 1) % 3]);
            pthread_barrier_wait(&made); write(1, "ready\\n", 6); return (int)read(0, &c, 1); }
    """)
    assert (first_line_of_a_deadlock(pid) or "").count(" waits for ") == 3


def test_who_joins_a_thread_that_only_waits_is_not_in_a_deadlock(c_program):
    pid = c_program("""
        static void *reads(void *p) { char c; read(0, &c, 1); return p; }
        int main(void) { pthread_t t; pthread_create(&t, 0, reads, 0); write(1, "ready\\n", 6);
            return pthread_join(t, 0); }
    """)
    assert until(lambda: re.match(r'waits for thread \d+ "program" to end', backtrace("--why", pid)[0]["why"]))
    joins, reads = backtrace("--why", pid)
    assert (joins["waits_for"], reads["waits_for"]) == (reads["tid"], None)
    assert "waits_for" not in backtrace(pid)[0]
    assert "deadlock" not in kymo("backtrace", "--why", pid).stdout


def test_the_open_zone_is_named_with_its_age(start, tmp_path):
    live = tmp_path / "live"
    live.mkdir(mode=0o700)
    program = start(sys.executable, """
        import sys, kymo
        with kymo.region("training step"):
            print("ready", flush=True)
            sys.stdin.readline()
    """, env={"KYMO": "on", "KYMO_DIR": str(live)})
    def ask():
        done = subprocess.run([KYMO, "backtrace", "--why", str(program.pid)], capture_output=True, text=True, check=True,
                              env={**clean(os.environ), "KYMO_DIR": str(live)})
        text = " ".join(done.stdout.split())
        return re.search(r'waits to read from a pipe \(descriptor 0\).*; in zone "training step" for [\d.]+ m?s', text)
    assert until(ask)


@pytest.mark.skipif(not os.path.exists("/proc/self/sched"), reason="this kernel does not say when a thread last ran")
def test_since_when(start):
    program = start(sys.executable, "import sys; print('ready', flush=True); sys.stdin.readline()")
    def ask():
        text = " ".join(kymo("backtrace", "--why", program.pid).stdout.split())
        return re.search(r"descriptor 0\), for about ([\d.]+ \w+)", text)
    assert until(lambda: (found := ask()) and re.fullmatch(r"[\d.]+ s", found[1]))
    kymo("backtrace", "--native", program.pid)
    assert until(ask), "held for its native frames, it has run since: that is when it began to wait anew"
