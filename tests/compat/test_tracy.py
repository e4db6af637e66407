"""Code that is marked for Tracy is recorded with TRACY_ENABLE, and is nothing at all without it."""
import re
import shutil
import subprocess

import pytest
from programs import BUILD, HERE, ROOT, Home, compiled, compiler, said


@pytest.fixture(scope="module")
def cpp(tmp_path_factory):
    path = tmp_path_factory.mktemp("cpp")
    home = Home(path)
    home.program = compiled(HERE / "marked.cpp", path / "marked", "-std=c++17", "-DTRACY_ENABLE")
    home.said = home.run(home.program)
    return home


@pytest.fixture(scope="module")
def c(tmp_path_factory):
    path = tmp_path_factory.mktemp("c")
    home = Home(path)
    home.said = home.run(compiled(HERE / "marked.c", path / "marked", "-std=c99", "-DTRACY_ENABLE"))
    return home


def line_of(source, text):
    """The number of the only line with that text."""
    (number,) = [i for i, line in enumerate((HERE / source).read_text().splitlines(), 1) if text in line]
    return number


# ---- C++ -------------------------------------------------------------------------------------------------

def test_it_records_by_itself_and_says_so(cpp):
    assert cpp.said == "2 recorded\n"
    assert len(cpp.recordings()) == 1


def test_a_zone_without_a_name_is_called_after_its_function(cpp):
    assert cpp.rows("SELECT count, line FROM trace.regions WHERE name = 'scoped'") == [
        {"count": 100, "line": line_of("marked.cpp", "\tZoneText(\"first part\"") - 1}]


def test_zones_keep_their_file(cpp):
    assert cpp.column("SELECT DISTINCT parse_filename(file) FROM trace.regions") == ["marked.cpp"]


def test_names_colors_and_stacks_in_any_mixture(cpp):
    wanted = {"a name": 1, "scoped_named": 3, "a colored name": 1, "with a stack": 1, "all of it": 1, "named": 4,
              "named colored": 1, "named stack": 1, "named all": 1, "transient": 2, "made at run time": 3,
              "thrown": 1, "recursive": 100, "templated": 2}
    found = cpp.rows("SELECT name, sum(count)::INT AS n FROM trace.regions GROUP BY ALL")
    assert {row["name"]: row["n"] for row in found if row["name"] in wanted} == wanted


def test_a_zone_that_is_not_active_is_not_there(cpp):
    assert cpp.column("SELECT name FROM trace.zones WHERE name = 'named inner'") == []


def test_a_renamed_zone_has_its_last_name_and_its_place(cpp):
    assert cpp.rows("SELECT name, line FROM trace.zones WHERE name IN ('before', 'after 1', 'after 2') ORDER BY start_ns") == [
        {"name": f"after {i}", "line": line_of("marked.cpp", 'ZoneScopedN("before")')} for i in (1, 2)]
    assert sorted(cpp.column("SELECT name FROM trace.zones WHERE name LIKE '%rename%' OR name LIKE 'formatted%'")) == [
        "formatted 3", "renamed thrice"]


def test_texts_and_values_belong_to_the_zone_that_was_named(cpp):
    sql = """SELECT t.text, t.value, z.name, z.line FROM trace.zone_text t JOIN trace.zones z USING (start_ns, tid)
        WHERE t.name = 'named' ORDER BY t.text"""
    line = line_of("marked.cpp", "ZoneNamed(outer, true)")
    assert cpp.rows(sql) == [{"text": "of the outer", "value": None, "name": "named", "line": line},
                             {"text": None, "value": 12, "name": "named", "line": line}]
    assert cpp.one("SELECT count(*) FROM trace.zone_text WHERE value = 4711") == 100


def test_an_exception_ends_its_zones(cpp):
    assert cpp.column("SELECT name FROM trace.open_zones") == []
    assert cpp.one("SELECT max(depth) FROM trace.zones WHERE name = 'recursive'") == 99


def test_frames_are_steps(cpp):
    assert cpp.rows("SELECT name, count(*) AS n, max(step) AS last FROM trace.steps GROUP BY name ORDER BY name") == [
        {"name": "frame", "n": 2, "last": 1}, {"name": "loading", "n": 4, "last": 3}, {"name": "physics", "n": 1, "last": 0}]


def test_messages_are_marks_and_need_no_end(cpp):
    assert sorted(cpp.column("SELECT text FROM trace.marks WHERE name = 'message'")) == [
        "a colored literal", "a literal", "cs", "no", "no NUL", "ss", "with a stack", "with all"]
    assert cpp.column("SELECT text FROM trace.marks WHERE name = 'app info'") == ["version 7"]


def test_plots_are_counters(cpp):
    assert cpp.rows("""SELECT name, count(*) AS n, max(value) AS most FROM trace.counters WHERE name NOT LIKE 'memory%'
        GROUP BY name ORDER BY name""") == [{"name": "load", "n": 10, "most": 4.5}, {"name": "queue", "n": 10, "most": 9.0},
                                            {"name": "share", "n": 10, "most": 9.0}]


def test_allocations_are_live_bytes_of_their_pool(cpp):
    live = "SELECT value::INT FROM trace.counters WHERE name = '{}' ORDER BY ts_ns"
    assert cpp.column(live.format("memory")) == [100, 150, 100, 0]
    assert cpp.column(live.format("memory: arena")) == [200, 0, 70, 0]


def test_a_wait_for_a_lock_is_a_zone_of_the_thread_that_waits(cpp):
    rows = cpp.rows("SELECT name, thread, depth, duration_ns > 0 AS some FROM trace.zones WHERE name LIKE 'wait for%'")
    assert rows == [{"name": "wait for balance_lock", "thread": "the other thread", "depth": 1, "some": True}]


def test_threads_have_their_names(cpp):
    assert sorted(cpp.column("SELECT DISTINCT thread FROM trace.zones")) == ["the main thread", "the other thread"]


# ---- C ---------------------------------------------------------------------------------------------------

def test_c_zones(c):
    assert c.said == "recorded\n"
    assert {row["name"]: row["count"] for row in c.rows("SELECT name, sum(count)::INT AS count FROM trace.regions GROUP BY 1")} == {
        "zones": 20, "a name": 10, "colored": 10, "stacks": 2, "formatted 7": 1, "renamed": 1}


def test_c_texts_go_to_the_zone_that_was_given(c):
    assert c.rows("SELECT name, text, value, count(*) AS n FROM trace.zone_text GROUP BY ALL ORDER BY name") == [
        {"name": "a name", "text": None, "value": 42, "n": 10}, {"name": "formatted 7", "text": "text 7", "value": None, "n": 1},
        {"name": "zones", "text": "of the outer", "value": None, "n": 10}]


def test_c_others(c):
    assert c.column("SELECT name FROM trace.steps ORDER BY name") == ["frame", "loading"]
    assert sorted(c.column("SELECT text FROM trace.marks")) == ["a literal", "a message", "colored", "colored literal", "version 7"]
    assert c.column("SELECT value FROM trace.counters WHERE name = 'queue' ORDER BY ts_ns") == [1.5, 2.5, 3.0]
    assert c.column("SELECT DISTINCT thread FROM trace.zones") == ["the C thread"]


# ---- on and off ------------------------------------------------------------------------------------------

def test_kymo_off_wins(cpp, tmp_path):
    home = Home(tmp_path)
    assert home.run(cpp.program, KYMO="off") == "2 not recorded\n"
    assert home.recordings() == []


def test_standby_waits_to_be_turned_on(cpp, tmp_path):
    home = Home(tmp_path)
    assert home.run(cpp.program, KYMO="standby") == "2 not recorded\n"
    assert home.column("SELECT name FROM trace.zones") == []


def test_many_translation_units_in_both_languages(tmp_path):
    (tmp_path / "a.cpp").write_text('#include <tracy/Tracy.hpp>\n#include <tracy/TracyC.h>\nextern "C" void b(void); void c();\n'
                                    'int main() { ZoneScoped; b(); c(); TracyCZone(z, 1) TracyCZoneEnd(z) return 0; }\n')
    (tmp_path / "b.c").write_text("#include <tracy/TracyC.h>\nvoid b(void);\nvoid b(void) { TracyCZone(z, 1); TracyCZoneEnd(z); }\n")
    (tmp_path / "c.cpp").write_text("#include <tracy/TracyC.h>\n#include <tracy/Tracy.hpp>\nvoid c();\nvoid c() { ZoneScoped; }\n")
    flags = ["-Wall", "-Wextra", "-Werror", "-DTRACY_ENABLE", f"-I{ROOT}/include", f"-I{ROOT}/compat/include"]
    for source in ("a.cpp", "b.c", "c.cpp"):
        said([compiler(source), *flags, "-c", source, "-o", source + ".o"], cwd=tmp_path)
    said(["c++", "a.cpp.o", "b.c.o", "c.cpp.o", "-o", "all", f"-L{BUILD}", "-lkymo", f"-Wl,-rpath,{BUILD}"], cwd=tmp_path)
    home = Home(tmp_path)
    home.run(tmp_path / "all")
    assert home.rows("SELECT name, sum(count)::INT AS n FROM trace.regions GROUP BY name ORDER BY name") == [
        {"name": "b", "n": 1}, {"name": "c", "n": 1}, {"name": "main", "n": 2}]


def test_a_zone_in_a_static_initialiser_is_recorded(tmp_path):
    source = tmp_path / "early.cpp"
    source.write_text('#include <tracy/Tracy.hpp>\nstatic int early() { ZoneScoped; return 0; }\nstatic int value = early();\n'
                      "int main() { return value; }\n")
    home = Home(tmp_path)
    home.run(compiled(source, tmp_path / "early", "-DTRACY_ENABLE"))
    assert home.column("SELECT name FROM trace.zones") == ["early"]


@pytest.mark.parametrize("enabled", ["-DTRACY_ENABLE", "-UTRACY_ENABLE"])
@pytest.mark.parametrize("compile_with", ["g++ -std=c++11", "g++ -std=c++20", "clang++ -std=c++11", "clang++ -std=c++20",
                                          "gcc -std=c99", "gcc -std=c17", "clang -std=c11"])
def test_it_compiles_without_a_warning(compile_with, enabled):
    if not shutil.which(compile_with.split()[0]):
        pytest.skip(f"there is no {compile_with.split()[0]}")
    source = "marked.cpp" if "++" in compile_with else "marked.c"
    said([*compile_with.split(), "-Wall", "-Wextra", "-Wpedantic", "-Werror", enabled, "-fsyntax-only", f"-I{ROOT}/include",
          f"-I{ROOT}/compat/include", HERE / source])


# ---- nothing at all --------------------------------------------------------------------------------------

MARK = re.compile(r"^\s*(Zone(Scoped|Named|Transient|Text|Name|Value|Color)|FrameMark|FrameImage|Tracy|Lock|tracy::|#include <tracy/)")
LOCK = re.compile(r"Tracy(?:Shared)?LockableN?\(([\w:]+), (\w+)(?:, [^)]*)?\)")


def unmarked(text):
    """The same program, had nobody ever marked it."""
    text = LOCK.sub(r"\1 \2", text)
    text = re.sub(r"(?:Shared)?LockableBase\(([\w:]+)\)", r"\1", text)
    text = re.sub(r"ZoneIsActiveV\(\w+\)|TracyC?IsConnected", "0", text)
    return "\n".join("" if MARK.match(line) else line for line in text.splitlines()) + "\n"


def machine_code(source, tmp_path, *options):
    out = tmp_path / "code.o"
    said([compiler(source), "-O2", "-c", *options, f"-I{ROOT}/include", f"-I{ROOT}/compat/include", source, "-o", out])
    return said(["objdump", "-dr", "--no-show-raw-insn", out])


@pytest.mark.parametrize("name", ["marked.cpp", "marked.c"])
def test_without_tracy_enable_it_is_the_machine_code_of_an_unmarked_program(name, tmp_path):
    if not shutil.which("objdump"):
        pytest.skip("there is no objdump")
    marked = (HERE / name).read_text()
    plain = unmarked(marked)
    assert not re.search(r"Tracy|tracy|Zone[A-Z]|FrameMark", re.sub(r"/\*.*?\*/", "", plain, flags=re.S))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / name).write_text(marked)
    (tmp_path / "b" / name).write_text(plain)
    wanted = machine_code(tmp_path / "b" / name, tmp_path)
    assert machine_code(tmp_path / "a" / name, tmp_path) == wanted
    assert machine_code(tmp_path / "a" / name, tmp_path, "-DTRACY_ENABLE", "-DKYMO_DISABLE") == wanted
    assert machine_code(tmp_path / "a" / name, tmp_path, "-DTRACY_ENABLE") != wanted


def test_without_tracy_enable_libkymo_is_not_needed(tmp_path):
    out = tmp_path / "plain"
    said(["c++", "-O2", f"-I{ROOT}/compat/include", HERE / "marked.cpp", "-o", out, "-pthread"])
    assert subprocess.run([out], capture_output=True, text=True, check=True).stdout == "2 not recorded\n"


def test_pools_that_are_freed_from_many_threads_come_down_to_nothing(tmp_path):
    home = Home(tmp_path)
    home.run(compiled(HERE / "pools.cpp", tmp_path / "pools", "-DTRACY_ENABLE"), KYMO_RING_ROWS="200000")
    assert home.one("SELECT arg_max(value, ts_ns) FROM trace.counters WHERE name = 'memory: shared'") == 0
    assert home.one("SELECT max(value) > 0 FROM trace.counters WHERE name = 'memory: shared'") is True
    assert home.one("SELECT count(*) FROM trace.counters WHERE name = 'memory: not tracked'") == 0
