"""Garbage collections of a Python program under kymo run: recorded as zones, and nobody's business otherwise."""
import sys
import textwrap

import pytest

from conftest import KYMO, Recording, run

MUCH = """
    import gc
    def much():
        for _ in range(100):  # more than a millisecond together, after which they are recorded
            gc.collect()
    class Cycle:
        def __init__(self):
            self.me = self
"""


@pytest.fixture
def bare(home, tmp_path):
    """bare(code): a program that never heard of kymo, under kymo run; env=… adds to the environment."""
    plain = {key: value for key, value in home.items() if key != "KYMO_GC"}

    def go(code, env=None, status=0):
        script = tmp_path / "bare.py"
        script.write_text(textwrap.dedent(MUCH) + textwrap.dedent(code))
        out = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        done = run([KYMO, "run", "-o", out, "--", sys.executable, script], {**plain, **(env or {})}, tmp_path, status)
        return Recording(out, done)
    return go


def test_a_collection_is_a_zone_with_what_it_collected_as_value(bare):
    recording = bare("""
        gc.disable()
        much()
        made = [Cycle() for _ in range(1234)]
        del made
        print(gc.collect(), gc.collect(0))
    """)
    collected, young = map(int, recording.stdout.split())
    assert collected >= 1234
    rows = recording.query("SELECT z.name, z.source, t.value FROM trace.zones z JOIN trace.zone_text t USING (start_ns, tid) "
                           "ORDER BY z.start_ns DESC LIMIT 2")
    assert [(row["name"], row["source"], row["value"]) for row in rows] == [
        ("gc (generation 0)", "python", young), ("gc (generation 2)", "python", collected)]


def test_a_collection_is_inside_of_what_caused_it(supervise):
    recording = supervise("""
        import gc
        for _ in range(100):
            gc.collect()
        with kymo.region("cleaning"):
            gc.collect()
    """, env={"KYMO_GC": "on"})
    sql = "SELECT g.depth - r.depth FROM trace.zones r JOIN trace.zones g ON g.start_ns >= r.start_ns AND g.start_ns + " \
          "g.duration_ns <= r.start_ns + r.duration_ns WHERE r.name = 'cleaning' AND g.name LIKE 'gc %'"
    assert recording.one(sql) == 1


def test_a_program_that_hardly_collects_makes_no_recording_of_its_own(bare):
    # On a busy machine its one collection may take the millisecond after all, for what others left in the caches: not every time.
    made = "SELECT count(*) FROM kymo.processes WHERE role = 'target'"
    assert any(bare("print(sum(range(10)))").one(made) == 0 for _ in range(5))


@pytest.mark.parametrize("act", [
    "gc.callbacks = []", "gc.callbacks.clear()", "del gc.callbacks", "gc.callbacks[:] = [lambda phase, info: None]",
    "gc.callbacks.insert(0, lambda phase, info: gc.callbacks.clear())",
    "gc.callbacks[0]('stop', {}); gc.callbacks[0](1, 2); gc.callbacks[0](); gc.callbacks[0]('start', {'generation': 7})",
    "import os; os.fork() or os._exit(not gc.collect() >= 0)",
])
def test_a_program_does_what_it_likes_with_the_callbacks(bare, act):
    recording = bare(f"""
        much()
        {act}
        much()
        kept = [Cycle() for _ in range(100)]
        del kept
        print(gc.collect() >= 100)
    """)
    assert recording.stdout == "True\n"


def test_nobody_sees_a_call_that_the_program_has_not_made(bare):
    recording = bare("""
        import sys
        seen = []
        sys.setprofile(lambda frame, event, arg: seen.append((event, getattr(arg, "__name__", frame.f_code.co_name))))
        gc.collect()
        sys.setprofile(None)
        print(seen)
    """)
    assert recording.stdout == "[('c_call', 'collect'), ('c_return', 'collect'), ('c_call', 'setprofile')]\n"


@pytest.mark.parametrize("env, left", [({"KYMO_GC": "off"}, 0), ({"KYMO_ZONES": "off"}, 1), ({}, 1)])
def test_it_is_switched_like_other_sources(bare, env, left):
    recording = bare("much()\nmuch()\nprint(len(gc.callbacks))", env)
    assert recording.stdout == f"{left}\n"
    assert (recording.one("SELECT count(*) FROM trace.zones WHERE name LIKE 'gc %'") > 0) == (not env)


def test_without_kymo_run_it_is_asked_for_by_name(plain):
    done = plain("""
        import gc
        from kymo import _auto
        _auto.start()
        for _ in range(200):
            gc.collect()
        print(kymo.directory() is not None)
    """, {"KYMO_GC": "on"})
    assert done.stdout == "True\n"


def summary_of(home, tmp_path, code, env):
    script = tmp_path / "summed.py"
    script.write_text(textwrap.dedent(MUCH) + textwrap.dedent(code))
    command = [KYMO, "run", "--force", "--python", "-o", tmp_path / "summed", "--", sys.executable, script]
    return run(command, {**home, "KYMO_QUIET": "", **env}, tmp_path).stderr.splitlines()


def test_collections_are_one_line_of_the_summary_apart_from_the_functions(home, tmp_path):
    lines = summary_of(home, tmp_path, """
        def test_model():
            for _ in range(3):
                much()
        test_model()
    """, {"KYMO_GC": "on"})
    at = next(i for i, line in enumerate(lines) if line.startswith("  self    % run  region "))
    assert not any("gc (generation" in line for line in lines), lines
    assert "python" in lines[at + 1].split(), lines
    assert sum(line.startswith("  garbage collection: ") and " collections, " in line for line in lines[at:]) == 1, lines


def test_where_none_are_recorded_the_summary_does_not_speak_of_them(home, tmp_path):
    lines = summary_of(home, tmp_path, "much()", {"KYMO_GC": "off"})
    assert not any("garbage collection" in line.lower() for line in lines), lines
