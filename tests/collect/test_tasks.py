"""kymo backtrace shows asyncio's tasks that are not running, as the program itself sees them."""
import json
import os
import subprocess
import sys

from conftest import KYMO, backtrace, clean, each_python, kymo, one, until

# Tasks in many shapes; what the program says of them comes from all_tasks(), get_stack() and cr_await.
TASKS = """
    import asyncio, json, sys, threading, types

    async def sleeps(): await asyncio.sleep(1000)
    async def deep(n): await (deep(n - 1) if n else sleeps())
    async def numbers():
        await asyncio.sleep(1000)
        yield 1
    async def counts():
        async for _ in numbers(): pass
    class Ёлка:
        async def ждёт(self): await sleeps()
        def __await__(self): return self.ждёт().__await__()
    async def custom(): await Ёлка()
    @types.coroutine
    def old_style():
        yield from asyncio.sleep(1000).__await__()
    async def old(): await old_style()
    async def group():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(sleeps(), name="in group 1")
            tasks.create_task(sleeps(), name="in group 2")
    async def waits_for(task): await task
    async def shielded(task): await asyncio.shield(task)
    async def waits(tasks): await asyncio.wait(tasks)
    async def gathers(*tasks): await asyncio.gather(*tasks)
    async def locked(lock):
        async with lock:
            await asyncio.sleep(1000)
    class Mine(asyncio.Task): pass

    def chain(coroutine):
        out = []
        while coroutine is not None:
            for kind in ("cr", "gi", "ag"):
                frame = getattr(coroutine, kind + "_frame", None)
                if frame is not None:
                    out.append([frame.f_code.co_qualname, frame.f_lineno])
                    coroutine = getattr(coroutine, kind + "_await" if kind != "gi" else "gi_yieldfrom", None)
                    break
            else:
                coroutine = getattr(coroutine, "ag_await", None)
        return out[::-1]

    async def main():
        loop, lock = asyncio.get_running_loop(), asyncio.Lock()
        make = lambda coroutine, name: loop.create_task(coroutine, name=name)
        a = make(sleeps(), "a")
        await asyncio.sleep(0)
        tasks = [a, make(deep(50), "deep"), make(counts(), "counts"), make(custom(), "custom"), make(old(), "old"),
                 make(group(), "group"), make(waits_for(a), "b"), make(shielded(a), "shielded"),
                 make(locked(lock), "lock holder"), make(locked(lock), "lock waiter"),
                 Mine(sleeps(), loop=loop, name="мой")]
        tasks.append(make(waits(tasks[:2]), "waits"))
        tasks.append(make(gathers(tasks[1], tasks[2]), "gathers"))
        unnamed = loop.create_task(sleeps())
        for _ in range(5):
            await asyncio.sleep(0)
        said = {task.get_name(): [chain(task.get_coro()), task.get_stack()[0].f_lineno]
                for task in asyncio.all_tasks() if task is not asyncio.current_task()}
        new = make(sleeps(), "new")
        print("ready", flush=True)
        sys.stdin.readline()
        print(json.dumps(said), flush=True)
        sys.stdin.readline()
    asyncio.run(main())
"""


def tasks_of(thread):
    return {task["task"]: task for task in thread["tasks"]}


def places(task):
    return [[frame["func"], frame["lineno"]] for frame in task["frames"]]


@each_python
def test_tasks_are_those_that_the_program_sees(start, python):
    program = start(python, TASKS)
    (thread,) = backtrace(program.pid)
    seen = tasks_of(thread)
    said = json.loads(program.say("tell"))
    assert set(seen) == {*said, "new"}
    assert len([name for name in said if name.startswith("Task-")]) == 1
    for name, (coroutines, outermost) in said.items():
        # A program cannot look through the iterators of asynchronous generators and of __await__(): ours goes on.
        opaque = name in ("counts", "custom", "old")
        assert places(seen[name])[-len(coroutines) if opaque else 0:] == coroutines, name
        assert seen[name]["frames"][-1]["lineno"] == outermost, name
    assert [func for func, _ in places(seen["counts"])] == ["sleep", "numbers", "counts"]
    assert [func for func, _ in places(seen["old"])] == ["sleep", "old_style", "old"]
    assert [func for func, _ in places(seen["custom"])] == ["sleep", "sleeps", "Ёлка.ждёт", "custom"]
    assert len(seen["deep"]["frames"]) == 53
    # Only one that is not running is listed: main is on the stack of the thread.
    assert "main" in [frame["func"] for frame in thread["frames"]]


@each_python
def test_who_waits_for_whom(start, python):
    program = start(python, TASKS)
    seen = tasks_of(backtrace(program.pid)[0])
    awaits = {name: sorted(task["awaits"]) for name, task in seen.items() if task["awaits"]}
    assert awaits == {"b": ["a"], "shielded": ["a"], "group": ["in group 1", "in group 2"], "waits": ["a", "deep"],
                      "gathers": ["counts", "deep"]}
    assert sorted(seen["a"]["awaited_by"]) == ["b", "shielded", "waits"]
    assert sorted(seen["deep"]["awaited_by"]) == ["gathers", "waits"]
    assert seen["in group 1"]["awaited_by"] == ["group"]
    assert seen["b"]["waits_for"] == "_asyncio.Task"
    assert seen["a"]["waits_for"] == seen["lock waiter"]["waits_for"] == "_asyncio.Future"
    assert (seen["a"]["state"], seen["new"]["state"]) == ("waiting", "new")


@each_python
def test_tasks_belong_to_the_thread_of_their_loop(start, python):
    program = start(python, """
        import asyncio, sys, threading
        async def sleeps(): await asyncio.sleep(1000)
        async def main(name, ready):
            tasks = [asyncio.create_task(sleeps(), name=f"{name} {n}") for n in range(3)]
            await asyncio.sleep(0)
            ready.wait()
            await asyncio.gather(*tasks)
        ready = threading.Barrier(3)
        for name in ("one", "two"):
            threading.Thread(target=lambda n=name: asyncio.run(main(n, ready)), name=name, daemon=True).start()
        ready.wait()
        print("ready", flush=True)
        sys.stdin.readline()
    """)
    def settled():
        threads = backtrace(program.pid)
        return threads if all(len(one(threads, name).get("tasks", [])) == 4 for name in ("one", "two")) else None
    threads = until(settled)
    assert "tasks" not in one(threads, "MainThread")
    for name in ("one", "two"):
        found = tasks_of(one(threads, name))
        assert sorted(task for task in found if not task.startswith("Task-")) == [f"{name} {n}" for n in range(3)]
        (main,) = [task for task in found.values() if task["task"].startswith("Task-")]
        assert sorted(main["awaits"]) == [f"{name} {n}" for n in range(3)]


@each_python
def test_tasks_that_never_rest_are_whole_or_missed(start, python):
    """Each coroutine of `odd` calls only those of `odd`: a mixture would be seen."""
    program = start(python, """
        import asyncio, sys
        async def odd_leaf(): await asyncio.sleep(0)
        async def odd(): await odd_leaf()
        async def even_leaf(): await asyncio.sleep(0)
        async def even(): await even_leaf()
        async def changes():
            while True:
                await odd()
                await even()
        async def main():
            tasks = [asyncio.create_task(changes()) for _ in range(20)]
            print("ready", flush=True)
            await asyncio.gather(*tasks)
        asyncio.run(main())
    """)
    allowed = {("odd_leaf", "odd", "changes"), ("even_leaf", "even", "changes"), ("changes",), ("main",), ()}
    allowed |= {(kind + "_leaf" if leaf else kind, *rest) for kind in ("odd", "even") for leaf, rest in
                ((False, ("changes",)), (True, (kind, "changes")))}
    seen = 0
    for _ in range(40):
        for task in backtrace(program.pid)[0].get("tasks", []):
            functions = tuple(frame["func"] for frame in task["frames"] if frame["func"] not in ("sleep", "__sleep0"))
            assert functions in allowed, functions
            seen += bool(functions)
    assert seen > 40
    assert program.child.poll() is None


def test_text_puts_tasks_at_the_same_place_together(start):
    program = start(sys.executable, """
        import asyncio, sys
        async def sleeps(): await asyncio.sleep(1000)
        async def main():
            tasks = [asyncio.create_task(sleeps(), name=f"w{n}") for n in range(3)]
            odd = asyncio.create_task(tasks_of(tasks), name="odd")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            print("ready", flush=True)
            sys.stdin.readline()
        async def tasks_of(tasks): await asyncio.gather(*tasks)
        asyncio.run(main())
    """)
    lines = kymo("backtrace", program.pid).stdout.splitlines()
    at = lines.index('  Task "odd", waits for tasks "w0", "w1", "w2"')
    assert lines[at + 1].split()[0] == "tasks_of" and lines[at + 1].endswith("program.py:11")
    at = lines.index('  3 tasks "w0", "w1", "w2", wait for a future; awaited by "odd"')
    assert [line.split()[0] for line in lines[at + 1:at + 3]] == ["sleep", "sleeps"]
    tree = kymo("backtrace", "--tree", program.pid).stdout
    pid = program.pid
    assert f'\n3 tasks {pid}/"w0", {pid}/"w1", {pid}/"w2", wait for a future; awaited by "odd"\n' in tree
    assert tree.index('"odd", waits') < tree.index("3 tasks")


def test_ten_thousand_tasks(start):
    program = start(sys.executable, """
        import asyncio, sys
        async def sleeps(n): await (sleeps(n - 1) if n else asyncio.sleep(1000))
        async def main():
            tasks = [asyncio.create_task(sleeps(3), name=f"w{n}") for n in range(10000)]
            await asyncio.sleep(0)
            print("ready", flush=True)
            sys.stdin.readline()
        asyncio.run(main())
    """)
    out = kymo("backtrace", program.pid).stdout
    assert '\n  10,000 tasks "w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7", …, wait for a future\n' in out




def test_sql_has_the_tasks_of_a_live_program(start, tmp_path):
    live = tmp_path / "live"
    live.mkdir(mode=0o700)
    place = {**clean(os.environ), "KYMO_DIR": str(live), "XDG_STATE_HOME": str(tmp_path / "state")}
    start(sys.executable, TASKS, prefix=(KYMO, "run", "-q", "-o", tmp_path / "run", "--"), env=place)
    done = subprocess.run([KYMO, "query", tmp_path / "run", "-f", "json", "SELECT task, thread, list(func ORDER BY depth) AS "
                           "funcs FROM python.backtrace WHERE task IN ('b', 'counts') GROUP BY ALL ORDER BY task"],
                          env=place, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [
        {"task": "b", "thread": "MainThread", "funcs": ["waits_for"]},
        {"task": "counts", "thread": "MainThread", "funcs": ["sleep", "numbers", "counts"]}]
