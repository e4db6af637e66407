"""Stalls of event loops: which callback, how long, what waited; and nothing that the program could see."""
import json
import os
import re
import subprocess
import sys

import pytest

from conftest import ALL_PYTHONS, KYMO, clean, until

BUILT = {name: version for name, version in ALL_PYTHONS.items() if version[:2] >= (3, 10)}
every_python = pytest.mark.parametrize("python", BUILT, ids=[".".join(map(str, v)) for v in BUILT.values()])


def ask(recording, sql, env):
    done = subprocess.run([KYMO, "query", "-f", "json", recording, sql], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def place(tmp_path):
    """An environment whose recordings are below tmp_path."""
    live = tmp_path / "live"
    live.mkdir(mode=0o700)
    return {**clean(os.environ), "KYMO_DIR": str(live), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def run(place, tmp_path):
    """Runs a program under kymo run; its rows of python.loop_stalls, and what it printed."""
    def run(python, code):
        (tmp_path / "program.py").write_text(code)
        done = subprocess.run([KYMO, "run", "-q", "-o", tmp_path / "rec", "--", python, tmp_path / "program.py"], env=place,
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return ask(tmp_path / "rec", "FROM python.loop_stalls ORDER BY ts_ns", place), done.stdout
    return run


BLOCKED = """
import asyncio, time
def load_model():
    time.sleep(0.1)
async def handler():
    await asyncio.sleep(0)
    load_model()
    await asyncio.sleep(0)
async def other():
    for _ in range(3): await asyncio.sleep(0.02)
async def main():
    task = asyncio.create_task(handler(), name="the handler")
    await asyncio.gather(task, *(other() for _ in range(7)))
asyncio.run(main())
"""


@every_python
def test_a_stall_has_its_duration_coroutine_task_and_what_waited(run, python):
    rows, _ = run(python, BLOCKED)
    if not rows and not extension_for(python):
        pytest.skip("no extension is built for this Python")
    row = max(rows, key=lambda row: row["duration_ns"])
    assert 100e6 <= row["duration_ns"] and row["coroutine"] == "handler" and row["task"] == "the handler", rows
    assert row["loop"] == "asyncio" and row["ready"] >= 7, rows  # the seven that had slept
    # Where stacks can be read (3.11 and later) the function that blocked, else the coroutine.
    assert (row["function"], row["line"]) in ([("load_model", 4)] if row["samples"] else [("handler", 5)]), rows
    assert row["file"].endswith("program.py"), rows


def extension_for(python):
    suffix = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"],
                            capture_output=True, text=True, check=False).stdout.strip()
    return (KYMO.parent / "python/kymo" / ("_loop" + suffix)).exists()


def test_callbacks_of_functions_and_methods_are_named(run):
    rows, _ = run(sys.executable, """
import asyncio, functools, time
class Protocol:
    def data_received(self, n): time.sleep(0.05)
def plain(): time.sleep(0.05)
def with_word(word): time.sleep(0.05)
async def main():
    loop = asyncio.get_running_loop()
    for callback in (Protocol().data_received, functools.partial(with_word, "x")):
        loop.call_soon(*([callback, 1] if callback.__class__ is not functools.partial else [callback]))
        await asyncio.sleep(0)
    loop.call_later(0.001, plain)
    await asyncio.sleep(0.02)
asyncio.run(main())
""")
    assert {row["coroutine"] for row in rows} >= {"Protocol.data_received", "with_word", "plain"}, rows


def test_context_run_outside_of_a_loop_is_no_stall(run):
    rows, _ = run(sys.executable, "import contextvars, time\ncontextvars.copy_context().run(time.sleep, 0.05)\n")
    assert rows == []


def test_a_loop_within_a_callback_is_not_blocked_by_it(run):
    """As nest_asyncio does: the inner callbacks run while the outer one is open."""
    rows, _ = run(sys.executable, """
import asyncio
async def inner():
    for _ in range(30): await asyncio.sleep(0.005)
async def outer():
    loop = asyncio.get_running_loop()
    task = loop.create_task(inner())
    this = asyncio.current_task()
    asyncio.tasks._leave_task(loop, this)
    while not task.done():
        loop._run_once()
    asyncio.tasks._enter_task(loop, this)
asyncio.run(outer())
""")
    assert [row for row in rows if row["coroutine"] == "outer"] == [], rows


def test_the_program_sees_nothing_of_it(run):
    code = """
import asyncio, contextvars, time, sys
async def main():
    try:
        asyncio.get_running_loop().call_soon(boom)
        time.sleep(0.02)
        await asyncio.sleep(0.01)
    finally:
        print(contextvars.Context.run, contextvars.Context.run.__doc__ is None, type(contextvars.Context.run))
def boom():
    time.sleep(0.02)
    raise ValueError("mine")
def handle(loop, context): print("handled", context["exception"])
loop = asyncio.new_event_loop()
loop.set_exception_handler(handle)
loop.run_until_complete(main())
loop.close()
ctx = contextvars.copy_context()
for bad in (lambda: ctx.run(), lambda: ctx.run(None), lambda: contextvars.Context.run(1, len), lambda: ctx.run(len, 1, 2)):
    try: bad()
    except TypeError as error: print(error)
print(ctx.run(sorted, [2, 1], reverse=True), ctx.run(dict, a=1))
"""
    rows, out = run(sys.executable, code)
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == plain
    assert {"boom", "main"} <= {row["coroutine"] for row in rows}, rows


def test_a_child_writes_no_row_of_its_parent(run):
    rows, _ = run(sys.executable, """
import asyncio, os, time
async def main():
    time.sleep(0.05)
    await asyncio.sleep(0)
asyncio.run(main())
async def fork():
    time.sleep(0.05)
    if not os.fork(): os._exit(0)
    os.wait()
    await asyncio.sleep(0)
asyncio.run(fork())
""")
    assert len({row["pid"] for row in rows}) == 1, rows


HUNG = """
import asyncio, time
def wait_for_disk():
    print("begun", flush=True)
    time.sleep(1000)
async def handler():
    await asyncio.sleep(0.01)
    wait_for_disk()
async def ticker():
    while True: await asyncio.sleep(0.001)
async def main():
    await asyncio.gather(handler(), *(ticker() for _ in range(4)))
asyncio.run(main())
"""


def test_why_names_the_function_that_blocks_the_loop(place, tmp_path):
    (tmp_path / "program.py").write_text(HUNG)
    program = subprocess.Popen([sys.executable, tmp_path / "program.py"], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "begun\n"
        wanted = r"blocks the event loop in wait_for_disk \(program\.py:5\): \d+ other tasks cannot run"
        seen = []

        def is_named():
            done = subprocess.run([KYMO, "backtrace", "--why", str(program.pid)], env=place, capture_output=True, text=True,
                                  check=False)
            seen[:] = [done.stdout + done.stderr]
            if "ptrace_scope" in done.stderr or "denied" in done.stderr:
                pytest.skip(done.stderr)
            return re.search(wanted, " ".join(done.stdout.split()))

        until(is_named)
        assert seen
    finally:
        program.kill()
        program.wait()
        program.stdout.close()
