"""A program cannot tell that its calls are recorded: the same output, status, arguments, tracebacks (FAULTS 39)."""
import pathlib
import shutil
import subprocess
import sys
import textwrap

import pytest
from conftest import KYMO
from pythons import PYTHONS, plainly, traced

STATE = """
import os, sys
print(sys.argv, sys.path, sys.flags, __name__, __doc__, sys.stdin.read())
print(sorted(name for name in vars(sys.modules["__main__"])), __spec__, globals().get("__file__"))
print("sitecustomize" in sys.modules, [path for path in sys.path_importer_cache if "_inject" in path])
print(sys._getframe().f_back, sys._getframe().f_code.co_name, sys.getrecursionlimit(), sys.exc_info())
def outer():
    return inner()
def inner():
    frames, frame = [], sys._getframe()
    while frame:
        frames.append(frame.f_code.co_name)
        frame = frame.f_back
    return frames
print(outer())
"""

PROGRAMS = {
    "its own state": STATE,
    "an exception": """
        def f(n):
            return 1 / n if not n else f(n - 1)
        f(3)
    """,
    "exceptions in exceptions": """
        def f():
            try:
                {}["missing"]
            except KeyError as error:
                raise ValueError("because") from error
        try:
            f()
        finally:
            print("finally")
    """,
    "an exception in a thread": """
        import threading
        def work():
            [][1]
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
        print("goes on")
    """,
    "an exception in __del__": """
        class Bad:
            def __del__(self):
                raise RuntimeError("in del")
        bad = Bad()
        del bad
    """,
    "too deep a recursion": """
        def f():
            return f() + 1
        f()
    """,
    "sys.exit with a text": "import sys\nsys.exit('that is all')",
    "sys.exit with a number": "import sys\nsys.exit(77)",
    "os._exit": "import os\nprint('out', flush=True)\nos._exit(9)",
    "a signal that kills": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "atexit": "import atexit\natexit.register(print, 'at the end')\natexit.register(lambda: 1 / 0)",
    "a syntax error": "def f(:\n    pass",
    "warnings": """
        import warnings
        def f():
            warnings.warn("look here", stacklevel=2)
        f()
    """,
    "generators and exceptions": """
        def numbers():
            try:
                for i in range(10):
                    yield i
            finally:
                print("closed")
        g = numbers()
        print(next(g), next(g), g.throw if 0 else "")
        try:
            g.throw(ValueError("thrown"))
        except ValueError as error:
            print(repr(error))
        print(sum(numbers()))
    """,
    "asyncio": """
        import asyncio
        async def work(n):
            await asyncio.sleep(0)
            if n == 3:
                raise ValueError(n)
            return n
        async def main():
            print(await asyncio.gather(*(work(n) for n in range(5)), return_exceptions=True))
            await work(3)
        asyncio.run(main())
    """,
    "its own sys.setprofile": """
        import sys
        seen = []
        def hook(frame, event, arg):
            if event in ("call", "return") and frame.f_code.co_name in ("f", "g"):
                seen.append((event, frame.f_code.co_name))
        def g():
            pass
        def f():
            g()
        sys.setprofile(hook)
        f()
        sys.setprofile(None)
        f()
        print(seen, sys.getprofile())
    """,
    "its own sys.settrace": """
        import sys
        seen = []
        def hook(frame, event, arg):
            if frame.f_code.co_name == "f":
                seen.append((event, frame.f_lineno))
                return hook
        def f():
            x = 1
            return x
        sys.settrace(hook)
        f()
        sys.settrace(None)
        print(seen, sys.gettrace())
    """,
    "its own cProfile": """
        import cProfile, pstats
        def g():
            pass
        def f():
            for _ in range(10):
                g()
        profile = cProfile.Profile()
        profile.runcall(f)
        profile.create_stats()
        print(sorted((key[2], stats[0]) for key, stats in profile.stats.items() if key[2] in "fg"))
    """,
}


@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_output_status_and_traceback_are_the_same(place, version, program):
    command = [PYTHONS[version], place(PROGRAMS[program]).name, "a", "two words", "*", ""]
    without = plainly(command, place.env, place.path, "typed\n")
    assert traced(command, place.env, place.path, "typed\n") == without


WAYS = {
    "a module": ["-m", "program", "a b"],
    "code": ["-c", STATE, "x"],
    "standard input": ["-", "x"],
    "options of the interpreter": ["-u", "-W", "error", "-X", "dev", "program.py"],
    "optimised": ["-OO", "program.py"],
    "safe path": ["-P", "program.py"],
    "a path that is not there": ["nowhere.py"],
    "a module that is not there": ["-m", "nowhere"],
}


@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_run_a_program_is_the_same(place, version, way):
    if way == "safe path" and version == "3.10":
        pytest.skip("Python 3.10 has no -P")
    place(STATE)
    command = [PYTHONS[version], *WAYS[way]]
    stdin = STATE if "-" in WAYS[way] else "typed\n"
    assert traced(command, place.env, place.path, stdin) == plainly(command, place.env, place.path, stdin)


def front(place, words, stdin="", python=sys.executable):
    """python -m kymo, without what it says at the end."""
    return plainly([python, "-m", "kymo", "-o", "front", *words], {**place.env, "KYMO_QUIET": "1"}, place.path, stdin)


@pytest.mark.parametrize("program", ["its own state", "an exception", "sys.exit with a number", "a signal that kills"])
def test_python_m_kymo_is_the_same_as_without(place, program):
    words = [place(PROGRAMS[program]).name, "-p", "--help", "two words"]
    without = plainly([sys.executable, *words], place.env, place.path, "typed\n")
    assert front(place, words, "typed\n") == without


def test_options_of_the_interpreter_before_m_kymo_go_to_the_program(place):
    script = place("import sys; print(sys.flags.optimize, sys.flags.dev_mode, sys.warnoptions, sys.argv)")
    env = {**place.env, "KYMO_QUIET": "1"}
    for ours in (["-m", "kymo"], ["-mkymo"]):
        shutil.rmtree(place.path / "o", ignore_errors=True)
        command = [sys.executable, "-O", "-X", "dev", "-Werror", *ours, "-o", "o", script.name, "-O"]
        assert plainly(command, env, place.path) == (0, f"1 True ['default', 'error'] ['{script.name}', '-O']\n", "")
    for ours in (["-Omkymo"], ["-Om", "kymo"]):
        shutil.rmtree(place.path / "o")
        assert plainly([sys.executable, *ours, "-o", "o", "-c", "import sys; print(sys.flags.optimize)"], env,
                       place.path) == (0, "1\n", "")


@pytest.mark.parametrize("theirs", ["print('theirs', __name__, __file__)", "raise ValueError('theirs is broken')",
                                    "import nothing_of_this_name"])
@pytest.mark.parametrize("version", PYTHONS)
def test_the_users_own_sitecustomize_runs_as_without(place, version, theirs):
    place(theirs, "sitecustomize.py")
    script = place("import os, sys\nprint('sitecustomize' in sys.modules, sys.path)")
    env = {**place.env, "PYTHONPATH": str(place.path)}
    command = [PYTHONS[version], script]
    without = plainly(command, env, place.path)
    assert "theirs" in without[1] + without[2] or "nothing_of_this_name" in without[2]
    assert traced(command, env, place.path) == without


def test_coverage_inside_a_traced_program_finds_the_same_lines(place):
    pytest.importorskip("coverage", reason="no coverage in this Python")
    script = place("""
        def f(n):
            if n > 1:
                return n
            return 0
        f(2)
    """)
    command = [sys.executable, "-m", "coverage", "run", "--data-file", place.path / "data", script]
    report = [sys.executable, "-m", "coverage", "report", "--data-file", place.path / "data", "-m"]
    assert traced(command, place.env, place.path) == (0, "", "")
    with_kymo = plainly(report, place.env, place.path)
    assert plainly(command, place.env, place.path) == (0, "", "")
    assert with_kymo == plainly(report, place.env, place.path)
    assert "75%" in with_kymo[1] or "80%" in with_kymo[1]


@pytest.mark.parametrize("version", PYTHONS)
def test_pdb_inside_a_traced_program_says_the_same(place, version):
    script = place("""
        def f(n):
            m = n + 1
            return m
        def g():
            return f(1) + f(2)
        print(g())
    """)
    commands = "break f\ncontinue\nargs\nnext\np m\nup\nlist\nreturn\nclear 1\nstep\nstep\nwhere\ncontinue\nquit\n"
    command = [PYTHONS[version], "-m", "pdb", script]
    without = plainly(command, place.env, place.path, commands)
    assert "(Pdb) n = 1" in without[1] and "\n5\n" in without[1].replace("(Pdb) ", "\n")
    assert traced(command, place.env, place.path, commands) == without


@pytest.mark.parametrize("version", PYTHONS)
def test_a_breakpoint_in_a_traced_program_stops_where_it_would(place, version):
    script = place("""
        def f(n):
            breakpoint()
            return n
        print(f(7))
        print(f(8))
    """)
    commands = "p n\nnext\nreturn\ncontinue\np n\ncontinue\n"
    without = plainly([PYTHONS[version], script], place.env, place.path, commands)
    found = traced([PYTHONS[version], script], place.env, place.path, commands)
    assert "(Pdb) 7\n" in without[1] and "(Pdb) 8\n" in without[1]
    if version != "3.13":  # there it stops a line later beside any tool of sys.monitoring, and where is not always the same
        assert found == without
    else:
        assert found[0] == 0 and "(Pdb) 7\n" in found[1] and "(Pdb) 8\n" in found[1]


@pytest.mark.parametrize("option, found", [("-E", 1), ("-I", 1), ("-S", 0)])
def test_an_installed_kymo_is_there_under_e_and_i(place, option, found):
    """.venv has kymo's .pth file, which site reads: -S keeps it away too."""
    script = place("def f():\n    pass\nf()\n")
    done = subprocess.run([KYMO, "run", "--python", "-o", "run", "--", sys.executable, option, script], cwd=place.path,
                          env=place.env, capture_output=True, text=True, check=True)
    sql = "SELECT count(*) AS n FROM trace.zones WHERE name = 'f'"
    asked = subprocess.run([KYMO, "query", "-f", "csv", "run", sql], cwd=place.path, env=place.env, capture_output=True,
                           text=True, check=True)
    assert asked.stdout == f"n\n{found}\n"
    assert ("no calls recorded" in done.stderr) == (not found)


@pytest.mark.parametrize("option", ["-E", "-I", "-S", "-sE"])
def test_what_keeps_kymo_out_is_said_at_the_end(place, option):
    python = next((path for path in PYTHONS.values() if ".venv" not in path), None)
    if not python:
        pytest.skip("there is no Python here but that of .venv, which has kymo's .pth file")
    script = place("print('ran')")
    done = subprocess.run([KYMO, "run", "--python", "-o", "run", "--", python, option, script], cwd=place.path,
                          env=place.env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    letter = "-E" if "E" in option else option
    assert done.stderr.splitlines()[-1] == (
        f"kymo: no calls recorded: the option {letter} keeps kymo out of this Python; run it without {letter}"
        + ("" if letter == "-S" else ", or install kymo in this Python, which works with -E and -I"))


def old_pythons():
    return sorted(pathlib.Path.home().glob(".pyenv/versions/[23].[2-9].*/bin/python"))


@pytest.mark.parametrize("python", old_pythons() or [None], ids=str)
def test_a_python_that_is_too_old_is_named_and_runs(place, python):
    if python is None:
        pytest.skip("there is no Python older than 3.10 here")
    script = place("print('ran')")
    status, out, err = plainly([KYMO, "run", "--python", "-o", "run", "--", python, script], place.env, place.path)
    assert (status, out) == (0, "ran\n")
    assert f"({python}) cannot be traced: 3.10 or newer is needed\n" in err


TRACING_TOOLS = {
    "the module trace": """
        import sys, trace
        tracer = trace.Trace(count=1, trace=0, ignoredirs=[sys.base_prefix, sys.prefix])
        tracer.runfunc(__import__, "colorsys")
        results = tracer.results()
        counted = {file for file, _ in results.counts}
        print(sorted(file for file in counted if not results.is_ignored_filename(file)))
    """,
    "a trace function": """
        import sys
        files = set()
        def tracer(frame, event, arg):
            files.add(frame.f_code.co_filename)
            return tracer
        sys.settrace(tracer)
        import colorsys
        sys.settrace(None)
        print(sorted(file for file in files if not file.startswith("<frozen ")))
    """,
}


@pytest.mark.parametrize("words", [(), ("--python",)], ids=["plain", "python"])
@pytest.mark.parametrize("tool", TRACING_TOOLS)
@pytest.mark.parametrize("version", PYTHONS)
def test_a_tracing_tool_of_the_program_sees_no_file_of_ours(place, version, tool, words):
    script = place(textwrap.dedent(TRACING_TOOLS[tool]))
    python = PYTHONS[version]
    assert traced([python, script], place.env, place.path, words=words) == plainly([python, script], place.env, place.path)


# Of CPython's own tests. 3.12 and later make an int for each call of C while any tool watches them.
@pytest.mark.parametrize("name", ["test_tracemalloc.TestTracemallocEnabled.test_get_traced_memory"])
def test_a_lookup_of_a_function_of_c_makes_no_objects(place, name):
    python = PYTHONS.get("3.11")
    if not python or plainly([python, "-c", f"import test.{name.split('.')[0]}"], place.env, place.path)[0]:
        pytest.skip("there is no Python 3.11 here that has CPython's tests")
    command = [python, "-m", "unittest", "-q", f"test.{name}"]
    status, _, err = traced(command, place.env, place.path, words=("--python=on,c-calls",))
    assert (status, err.splitlines()[-1:]) == (0, ["OK"])
