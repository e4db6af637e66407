"""Child processes of all kinds, and what starts kymo in a Python."""
import ast
import os
import subprocess
import sys
import time

import pytest
from conftest import KYMO, ROOT
from pythons import PYTHONS, plainly, traced
from recorded import calls

KINDS = {
    "fork": """
        import os
        def work():
            pass
        if not os.fork():
            work()
            os._exit(0)
        os.wait()
    """,
    "multiprocessing fork": "METHOD = 'fork'",
    "multiprocessing spawn": "METHOD = 'spawn'",
    "multiprocessing forkserver": "METHOD = 'forkserver'",
    "subprocess": """
        import subprocess, sys
        subprocess.run([sys.executable, "-c", "def work(): pass\\nwork()"], check=True)
    """,
    "subprocess with another environment": """
        import os, subprocess, sys
        subprocess.run([sys.executable, "-c", "def work(): pass\\nwork()"], env={**os.environ, "X": "1"}, check=True)
    """,
    "exec": """
        import os, sys
        os.execv(sys.executable, [sys.executable, "-c", "def work(): pass\\nwork()"])
    """,
    "a shell in between": """
        import subprocess, sys
        subprocess.run(f"exec {sys.executable} -c 'def work(): pass\\nwork()'", shell=True, check=True)
    """,
    "an executor": """
        import concurrent.futures
        def work():
            pass
        if __name__ == "__main__":
            with concurrent.futures.ProcessPoolExecutor(1) as pool:
                pool.submit(work).result()
    """,
}
MULTIPROCESSING = """
import multiprocessing
def work():
    pass
if __name__ == "__main__":
    process = multiprocessing.get_context(METHOD).Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 0
"""


@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_child_is_recorded(front, version, kind):
    code = KINDS[kind] + MULTIPROCESSING if "METHOD" in KINDS[kind] else KINDS[kind]
    recording = front.inject(PYTHONS[version], code)
    assert recording.one("SELECT count(*) FROM trace.zones WHERE name = 'work' AND source = 'python'") == 1
    if kind != "exec":
        assert recording.one("SELECT count(DISTINCT z.pid) FROM trace.zones z JOIN trace.zones w ON w.name = 'work' "
                             "WHERE z.name = '<module>' AND z.pid != w.pid AND z.source = 'python'") >= 1


@pytest.mark.parametrize("version", PYTHONS)
def test_a_program_under_a_python_that_has_no_kymo(front, version):
    recording = front.inject(PYTHONS[version], """
        import threading
        def f(n):
            return f(n - 1) if n else 0
        threads = [threading.Thread(target=f, args=(3,)) for _ in range(2)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        f(4)
    """)
    assert calls(recording, "%/program.py")["f"] == 13


@pytest.mark.parametrize("version", PYTHONS)
def test_tasks_of_asyncio_are_balanced(front, version):
    recording = front.inject(PYTHONS[version], """
        import asyncio
        async def leaf(n):
            await asyncio.sleep(0.001)
            return n
        async def branch(n):
            return sum([await leaf(n), await leaf(n)])
        async def main():
            print(sum(await asyncio.gather(*(branch(n) for n in range(10)))))
        asyncio.run(main())
    """)
    assert recording.stdout == "90\n"
    assert recording.one("SELECT count(*) FROM trace.open_zones") == 0
    assert calls(recording, "%/program.py")["leaf"] >= 20


# --- without kymo run: the .pth file ------------------------------------------------------------------------------

def started(front, env):
    script = front.write("def work():\n    pass\nwork()\n")
    return plainly([sys.executable, script], {**front.env, **env}, front.path)


@pytest.mark.parametrize("word", ["on", "ON", "1", "true", "Yes"])
def test_kymo_python_starts_it_by_itself(front, word):
    assert started(front, {"KYMO_PYTHON": word}) == (0, "", "")
    (run,) = (front.path / "live").iterdir()
    done = subprocess.run([front.env["KYMO_BIN"], "query", "-f", "csv", run, "SELECT count(*) FROM trace.zones WHERE name = "
                           "'work'"], env=front.env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "1"


@pytest.mark.parametrize("word", ["off", "OFF", "0", "false", "No", "", "/usr/bin/python3"])
def test_off_and_a_path_start_nothing(front, word):
    assert started(front, {"KYMO_PYTHON": word}) == (0, "", "")
    assert list((front.path / "live").iterdir()) == []


def test_an_unknown_word_is_said_and_means_off(front):
    assert started(front, {"KYMO_PYTHON": "of", "KYMO_TORCH": "onn", "PROBING_TORCH_PROFILING": "2"}) == (
        0, "", "kymo: KYMO_PYTHON=of is ignored; use on, off or partial, with ,lines or ,c-calls\n"
               "kymo: KYMO_TORCH=onn is ignored; use on or off\n"
               "kymo: PROBING_TORCH_PROFILING=2 is ignored; use on or off\n")
    assert list((front.path / "live").iterdir()) == []


def test_kymo_off_wins(front):
    assert started(front, {"KYMO": "off", "KYMO_PYTHON": "on"}) == (0, "", "")
    assert list((front.path / "live").iterdir()) == []


def test_the_pth_line_costs_nothing_while_no_variable_is_set():
    """Its CPU time, since the wall clock is everybody's; a millisecond is the most, and it takes microseconds."""
    line = (ROOT / "python/kymo_auto.pth").read_text()
    assert line.startswith("import ") and line.count("\n") == 1
    for name in ("KYMO_PYTHON", "KYMO_TORCH", "PROBING_TORCH_PROFILING"):
        assert name not in os.environ
    code = compile(line, "kymo_auto.pth", "exec")
    times = []
    for _ in range(100):
        begin = time.process_time_ns()
        exec(code, {})
        times.append(time.process_time_ns() - begin)
    assert sorted(times)[50] < 1_000_000
    assert "kymo._auto" not in sys.modules or "kymo" in sys.modules


COUNTED = """
import gc, sys
print(sorted(name for name in sys.modules if name.split(".")[0] in ("kymo", "sitecustomize")))
print(len(sys.modules), len(gc.callbacks), [type(finder).__name__ for finder in sys.meta_path][:1])
"""


def plain_env(place):
    """Without the settings of the tests: kymo run sets its own."""
    return {name: value for name, value in place.env.items() if name not in ("KYMO_GC", "KYMO_TORCH")}


@pytest.mark.parametrize("version", PYTHONS)
def test_a_python_below_a_plain_run_loads_one_library(place, version):
    """Each Python pays for what is loaded: no file of Python is read or compiled."""
    command = [PYTHONS[version], "-B", place(COUNTED)]
    without = plainly(command, plain_env(place), place.path)[1].splitlines()
    status, out, _ = traced(command, plain_env(place), place.path, words=())
    ours = out.splitlines()
    # Debian's own Python has a sitecustomize.
    more = set(ast.literal_eval(ours[0])) - set(ast.literal_eval(without[0]))
    assert status == 0 and more == {"kymo._gc", "kymo._loop"}, out
    assert int(ours[1].split()[0]) <= int(without[1].split()[0]) + 3  # two of one library, and atexit, which is built in
    assert ours[1].split(maxsplit=1)[1] == "1 ['TorchWaiter']"


def test_children_that_record_nothing_leave_nothing(place):
    script = place("import subprocess, sys\nfor _ in range(5): subprocess.run([sys.executable, '-c', 'pass'], check=True)")
    assert traced([sys.executable, script], plain_env(place), place.path, words=()) == (0, "", "")
    pids = {path.name for path in (place.path / "run").iterdir() if path.is_dir()}
    assert len(pids) <= 2, pids  # of the collector, and of the program, whose collections may have taken a millisecond


@pytest.mark.parametrize("version", PYTHONS)
def test_a_module_named_torch_is_found_as_without(place, version):
    """The finder of the injected extension gives way to the one that knows torch."""
    place("class nn: pass\nprint('torch of', __name__, __spec__.name)", "torch.py")
    script = place("""
        import sys
        import torch
        print(torch.__spec__.origin.rsplit("/", 1)[1], type(torch.__loader__).__name__)
        assert not any(type(finder).__name__ == "TorchWaiter" for finder in sys.meta_path)
        try:
            import torch_of_nobody
        except ImportError as error:
            print(error)
    """)
    env = {**place.env, "PYTHONPATH": str(place.path)}
    without = plainly([PYTHONS[version], "-B", script], env, place.path)
    status, out, _ = traced([PYTHONS[version], "-B", script], {**plain_env(place), "PYTHONPATH": str(place.path)}, place.path,
                            words=())
    assert (status, out) == without[:2] and status == 0


@pytest.mark.parametrize("twice", ["", "from kymo import _auto\n_auto.start()\n"], ids=["once", "started twice"])
def test_an_uncaught_exception_is_noted_once(place, twice):
    script = place(f"import sys\nsys.path.insert(0, {str(ROOT / 'build/python')!r})\n{twice}raise ValueError('the end')\n")
    assert traced([sys.executable, script], plain_env(place), place.path, words=())[0] == 1
    sql = "SELECT count(*) AS n FROM trace.marks WHERE name = 'uncaught exception'"
    assert plainly([KYMO, "query", "run", sql, "-f", "csv"], place.env, place.path)[1].split() == ["n", "1"]
