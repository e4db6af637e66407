"""kymo backtrace: the stacks of a program that is not stopped are those that it has."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import (
    ALL_PYTHONS,
    PYTHONS,
    ROOT,
    backtrace,
    each_python,
    frames,
    kymo,
    one,
    until,
)

# Parks a thread in each of many shapes, and writes down what Python itself says of them.
SHAPES = """
    import asyncio, json, sys, threading, time
    gate = threading.Event()
    count = 0
    def park():
        global count
        count += 1
        gate.wait()
    def plain(): helper()
    def helper():
        x = (1,
             park(),
             2)
    def generator():
        yield 1
        yield from inner()
    def inner():
        park()
        yield 2
    def drive(): list(generator())
    async def leaf(): park()
    async def middle(): await leaf()
    async def top():
        async with Manager():
            await asyncio.gather(middle())
    class Manager:
        async def __aenter__(self): pass
        async def __aexit__(self, *args): pass
    def loop(): asyncio.run(top())
    class Größe:
        def ёлка(self): (lambda: park())()
        @property
        def 数(self): return self.ёлка()
        def __lt__(self, other): return self.数
    def sort(): sorted([Größe(), Größe()])
    def nested():
        def 𝒻(n): return 𝒻(n - 1) if n else park()
        𝒻(5)
    def comprehension(): return [park() for _ in range(1)]
    def finish():
        try:
            raise ValueError
        except ValueError:
            try:
                pass
            finally:
                park()
    def long_lines():
        return dict(
            a=1,
            b=max(
                3, 4,
                key=lambda v: park(),
            ),
        )
    shapes = [plain, drive, loop, sort, nested, comprehension, finish, long_lines]
    for shape in shapes:
        threading.Thread(target=shape, name=shape.__name__, daemon=True).start()
    while count < len(shapes):
        time.sleep(0.01)
    time.sleep(0.2)
    names = {t.ident: t.name for t in threading.enumerate()}
    def stack(frame):
        out = []
        while frame:
            out.append([frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno])
            frame = frame.f_back
        return out
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps({names[i]: stack(f) for i, f in sys._current_frames().items() if i != threading.get_ident()}),
          flush=True)
    sys.stdin.readline()
"""


@each_python
def test_stacks_are_those_that_python_itself_gives(start, python):
    program = start(python, SHAPES)
    seen = {thread["thread"]: [[f["func"], f["file"], f["lineno"]] for f in thread["frames"]]
            for thread in backtrace(program.pid)}
    said = json.loads(program.say("tell"))
    assert len(said) == 8
    for name, stack in said.items():
        assert seen[name] == stack, name


@each_python
def test_py_spy_sees_the_same_frames(start, python):
    spy = ROOT / ".venv/bin/py-spy"
    if not spy.exists():
        pytest.skip("py-spy is not installed: make setup")
    program = start(python, SHAPES)
    done = subprocess.run([str(spy), "dump", "--json", "--nonblocking", "--pid", str(program.pid)], capture_output=True,
                          text=True, check=False, timeout=60)
    if done.returncode:
        pytest.skip(f"py-spy cannot read this Python: {done.stderr.strip().splitlines()[-1]}")
    peer = {t["os_thread_id"]: [(f["name"].split(".")[-1], f["filename"], f["line"]) for f in t["frames"]]
            for t in json.loads(done.stdout)}
    ours = {t["tid"]: [(f["func"].split(".")[-1], f["file"], f["lineno"]) for f in t["frames"]]
            for t in backtrace(program.pid) if t["thread"] != "MainThread"}
    for tid, stack in ours.items():
        # py-spy gives qualified names of some only, and shows frames of the interpreter itself.
        assert stack == [f for f in peer[tid] if f[0] != "<shim>"], tid


@each_python
def test_threads_have_python_names_and_one_holds_the_gil(start, python):
    program = start(python, """
        import threading, time
        threading.Thread(target=lambda: time.sleep(100), name="sleepy", daemon=True).start()
        def spin():
            print("ready", flush=True)
            while True:
                pass
        spin()
    """)
    threads = until(lambda: [t for t in [backtrace(program.pid)] if one(t, "MainThread")["gil"]])[0]
    assert [t["thread"] for t in threads] == ["MainThread", "sleepy"]
    assert not one(threads, "sleepy")["gil"]
    assert [f for f, _ in frames(one(threads, "MainThread"))] == ["spin", "<module>"]


@each_python
def test_a_class_that_is_called_often_has_no_frame_of_the_interpreter(start, python):
    """Since 3.13 the interpreter puts a frame of its own between the two."""
    program = start(python, """
        import sys
        class Often:
            def __init__(self, n):
                if n == 5000:
                    print("ready", flush=True)
                    sys.stdin.readline()
        def make():
            for n in range(5001):
                Often(n)
        make()
    """)
    (thread,) = backtrace(program.pid)
    assert frames(thread) == [("Often.__init__", 7), ("make", 10), ("<module>", 11)]


@each_python
def test_ten_thousand_frames_deep(start, python):
    program = start(python, """
        import sys, threading
        sys.setrecursionlimit(20000)
        def down(n):
            if n:
                return down(n - 1)
            print("ready", flush=True)
            sys.stdin.readline()
        down(10000)
    """)
    (thread,) = backtrace(program.pid)
    assert frames(thread) == [("down", 8)] + [("down", 6)] * 10000 + [("<module>", 9)]


@each_python
def test_two_hundred_threads(start, python):
    program = start(python, """
        import sys, threading
        gate, ready = threading.Event(), threading.Barrier(201)
        def work(n):
            ready.wait()
            gate.wait()
        for n in range(200):
            threading.Thread(target=work, args=(n,), name=f"w{n}", daemon=True).start()
        ready.wait()
        print("ready", flush=True)
        sys.stdin.readline()
    """)
    def asleep():
        threads = backtrace(program.pid)
        found = [t for t in threads if ("work", 6) in frames(t)]
        return threads if len(found) == 200 else None
    threads = until(asleep)
    assert {t["thread"] for t in threads} == {"MainThread", *(f"w{n}" for n in range(200))}
    assert all(not t["missed"] for t in threads)


LOCALS = """
    import sys
    class Thing:
        pass
    def work(number, password, hf_token):
        text, real, nothing, yes = "a'b\\nё" + "x" * 200, 0.1, None, True
        big, negative, items, mapping = 10**30, -5, [1, 2, 3], {"k": 1}
        thing, tokens, raw, group = Thing(), (1, 2), b"abc", {1}
        seen = 7
        def inner():
            return seen
        print("ready", flush=True)
        sys.stdin.readline()
    work(42, "hunter2", "hf_abc")
"""


@each_python
def test_locals_are_read_from_outside_and_secrets_are_not(start, python):
    program = start(python, LOCALS)
    (thread,) = backtrace("--locals", program.pid)
    values = thread["frames"][0]["locals"]
    text = values.pop("text")
    assert text.startswith("'a\\'b\\nёxxx") and text.endswith("x…'") and len(text) < 100
    assert values.pop("inner") == "<function>"
    assert values.pop("big").startswith("<int of about ")
    assert values == {
        "number": "42", "password": "(not shown)", "hf_token": "(not shown)", "real": "0.1", "nothing": "None",
        "yes": "True", "negative": "-5", "items": "<list of 3 items>", "mapping": "<dict of 1 items>",
        "thing": "<Thing>", "tokens": "<tuple of 2 items>", "raw": "<bytes of 3 bytes>", "group": "<set of 1 items>",
        "seen": "7"}
    assert "hunter2" not in kymo("backtrace", "--locals", program.pid).stdout


def test_text_reads_well_in_eighty_columns(start):
    program = start(sys.executable, """
        import sys
        def a_function_with_a_name_that_is_longer_than_a_column_should_be():
            print("ready", flush=True)
            sys.stdin.readline()
        a_function_with_a_name_that_is_longer_than_a_column_should_be()
    """)
    out = kymo("backtrace", program.pid).stdout.splitlines()
    version = ".".join(map(str, sys.version_info[:3]))
    assert out[0] == f"{pathlib.Path(sys.executable).resolve().name[:15]}, pid {program.pid}, Python {version}, 1 thread" \
        or out[0] == f"{pathlib.Path(sys.executable).name[:15]}, pid {program.pid}, Python {version}, 1 thread"
    assert out[1:3] == ["", f"Thread {program.pid} \"MainThread\", waiting"]
    assert out[3].startswith("  a_function_with_a_") and out[3].endswith("program.py:5")
    assert out[4].endswith("program.py:6")


def test_tree_shows_the_odd_one_first(start):
    program = start(sys.executable, """
        import multiprocessing, sys, time
        def work(n, ready):
            ready.wait()
            odd() if n == 2 else even()
        def even(): time.sleep(100)
        def odd(): time.sleep(100)
        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            ready = context.Barrier(5)
            for n in range(4):
                context.Process(target=work, args=(n, ready), daemon=True).start()
            ready.wait()
            time.sleep(0.3)
            print("ready", flush=True)
            sys.stdin.readline()
    """)
    def settled():
        out = kymo("backtrace", "--tree", program.pid).stdout
        return out if out.count("thread:") + out.count("threads:") == 3 and "3 threads:" in out else None
    out = until(settled)
    assert out.splitlines()[0] == "5 processes, 5 threads, 3 different stacks; smallest group first"
    assert out.index("\n  odd ") < out.index("3 threads:") < out.index("\n  even ")
    assert len(backtrace("--tree", program.pid)) == 5


# --- targets that do not help ------------------------------------------------------------------------------

@each_python
def test_a_stopped_program_answers(start, python):
    program = start(python, """
        import sys
        def here():
            print("ready", flush=True)
            sys.stdin.readline()
        here()
    """)
    os.kill(program.pid, signal.SIGSTOP)
    (thread,) = until(lambda: [t for t in backtrace(program.pid) if t["state"] == "T"])
    began = time.monotonic()
    assert frames(backtrace(program.pid)[0]) == [("here", 5), ("<module>", 6)]
    assert time.monotonic() - began < 2
    os.kill(program.pid, signal.SIGCONT)
    assert thread["gil"] is False


def test_a_zombie_is_named_as_one():
    child = subprocess.Popen(["true"])
    try:
        until(lambda: pathlib.Path(f"/proc/{child.pid}/stat").read_text().split()[2] == "Z")
        done = kymo("backtrace", child.pid, status=1)
        assert done.stderr == f"kymo backtrace: process {child.pid} (true) is a zombie; it has no stack\n"
    finally:
        child.wait()


def test_a_pid_that_is_nobodys():
    assert kymo("backtrace", 4194303, status=1).stderr == "kymo backtrace: process 4194303 does not exist\n"


def test_a_program_without_python_says_so():
    child = subprocess.Popen(["sleep", "100"])
    try:
        until(lambda: "sleep" in pathlib.Path(f"/proc/{child.pid}/cmdline").read_text())
        out = kymo("backtrace", child.pid).stdout.splitlines()
        assert out[0] == f"sleep, pid {child.pid}, 1 thread"
        assert out[1] == f"no Python frames: process {child.pid} has no Python; --native shows native frames"
        assert len(out) == 4 and out[3].startswith(f'Thread {child.pid} "sleep"'), "what is said once is not said of each thread"
    finally:
        child.kill()
        child.wait()


def test_an_old_python_is_named(start):
    old = [name for name, version in ALL_PYTHONS.items() if version[:2] == (3, 10)]
    if not old:
        pytest.skip("there is no Python 3.10")
    program = start(old[0], "import sys; print('ready', flush=True); sys.stdin.readline()")
    assert "runs Python 3.10; 3.11 to 3.15 are supported" in kymo("backtrace", program.pid).stdout


def test_another_user_gets_a_sentence_with_the_command(start):
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv, to become somebody else")
    program = start(sys.executable, "import sys; print('ready', flush=True); sys.stdin.readline()")
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all",
                           KYMO_COPY(), "backtrace", str(program.pid)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (f"kymo backtrace: process {program.pid} belongs to another user; "
                           f"use sudo kymo backtrace {program.pid}\n")


def KYMO_COPY():
    """The program where everybody can reach it."""
    from conftest import KYMO
    copy = pathlib.Path(f"/tmp/kymo-test-{os.getpid()}")
    shutil.copy(KYMO, copy)
    copy.chmod(0o755)
    return str(copy)


@pytest.fixture(autouse=True, scope="session")
def no_copy_stays():
    yield
    pathlib.Path(f"/tmp/kymo-test-{os.getpid()}").unlink(missing_ok=True)


@each_python
def test_a_container_with_its_own_pids_and_mounts(start, python):
    unshare = ["unshare", "--pid", "--mount", "--fork", "--mount-proc"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not unshare namespaces")
    program = start(python, """
        import sys, threading
        def worker(): gate.wait()
        gate = threading.Event()
        threading.Thread(target=worker, name="inside", daemon=True).start()
        def here():
            print("ready", flush=True)
            sys.stdin.readline()
        here()
    """, prefix=unshare)
    (pid,) = [int(p) for p in pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()]
    threads = backtrace(pid)
    assert frames(one(threads, "MainThread")) == [("here", 8), ("<module>", 9)]
    assert frames(one(threads, "inside"))[-4:-3] == [("worker", 3)]


# --- moments that are hard ---------------------------------------------------------------------------------

BUSY = {
    "import": """
        import importlib, sys
        print("ready", flush=True)
        while True:
            for name in ("json", "email.message", "decimal", "argparse", "difflib"):
                for key in [k for k in sys.modules if k.split(".")[0] == name.split(".")[0]]:
                    del sys.modules[key]
                importlib.import_module(name)
    """,
    "gc": """
        import gc
        class Node:
            def __del__(self): self.x = 1
        print("ready", flush=True)
        while True:
            for _ in range(1000):
                a, b = Node(), Node()
                a.b, b.a = b, a
            gc.collect()
    """,
    "c loop": """
        print("ready", flush=True)
        data = list(range(2000000))
        while True:
            sum(data)
    """,
    "exec": """
        print("ready", flush=True)
        while True:
            for n in range(50):
                exec(compile(chr(10) * n + "def f():\\n    return 1\\nf()", f"made{n}.py", "exec"))
    """,
    "threads": """
        import threading
        print("ready", flush=True)
        def work(): sum(range(100))
        while True:
            some = [threading.Thread(target=work) for _ in range(20)]
            [t.start() for t in some]
            [t.join() for t in some]
    """,
}


@pytest.mark.parametrize("what", BUSY)
@each_python
def test_reading_during(start, python, what):
    program = start(python, BUSY[what])
    for _ in range(8):
        for thread in backtrace(program.pid):
            if thread["frames"]:
                assert thread["frames"][-1]["func"] in ("<module>", "Thread._bootstrap"), thread
            for frame in thread["frames"]:
                assert frame["lineno"] is None or 0 < frame["lineno"] < 100000
                # Code objects at one address after another: the file says which line the code begins at. A module that
                # has not run its first instruction yet is at line 1, as CPython has it, or at none; it is the innermost.
                begins = frame["depth"] == 0 and frame["func"] == "<module>" and frame["lineno"] in (None, 1)
                if frame["file"].startswith("made") and not begins:
                    assert frame["lineno"] >= int(frame["file"][4:-3])
    assert program.child.poll() is None


@each_python
def test_a_program_that_is_ending(start, python):
    for _ in range(5):
        program = start(python, """
            import atexit, time
            class Late:
                def __del__(self): sum(range(3000000))
            late = Late()
            atexit.register(lambda: sum(range(1000000)))
            print("ready", flush=True)
        """)
        while program.child.poll() is None:
            done = subprocess.run([str(ROOT / "build/kymo"), "backtrace", "--json", str(program.pid)],
                                  capture_output=True, text=True, check=False, timeout=30)
            assert done.returncode in (0, 1), done.stderr
            assert done.returncode == 0 or "Traceback" not in done.stderr
        assert program.child.returncode == 0


def test_the_layouts_are_those_of_the_headers():
    with_headers = [name for name, version in PYTHONS.items() if pathlib.Path(subprocess.run(
        [name, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], capture_output=True, text=True,
        check=True).stdout.strip(), "internal/pycore_frame.h").exists()]
    if not with_headers:
        pytest.skip("no Python with its internal headers")
    done = subprocess.run([ROOT / "tools/gen-pylayout", "--check", *with_headers], capture_output=True, text=True,
                          check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
