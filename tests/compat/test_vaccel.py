"""vaccel_prof.h: what its users rely on, what upstream got wrong, and the code of its own documentation."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import threading

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests/compat"
KYMO = pathlib.Path(os.environ.get("KYMO_BIN") or ROOT / "build/kymo").resolve()
BUILD = KYMO.parent
SEEDS = ROOT.parent / "shared/seeds"
SOAK = os.environ.get("KYMO_TEST_KILLS") == "10000"  # tests/run --soak
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LINE = re.compile(r"\d{4}\.\d\d\.\d\d-\d\d:\d\d:\d\d\.\d\d - <info> \[prof\] (\S+): total_time: (\d+) nsec nr_entries: (\d+)")


def compile_to(out, *words, compiler="cc", libraries=True):
    link = [f"-L{BUILD}", "-lkymo_compat", "-lkymo", f"-Wl,-rpath,{BUILD}"] if libraries else []
    command = [compiler, "-O1", "-g", "-D_GNU_SOURCE", f"-I{ROOT}/compat/include", *words, *link, "-lpthread", "-ldl", "-o", out]
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


class Place:
    def __init__(self):
        shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="kymo-compat-test-", dir=shm))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("KYMO", "VACCEL"))}
        self.env |= {"KYMO_DIR": str(self.path / "live"), "XDG_STATE_HOME": str(self.path / "state"), "HOME": str(self.path)}
        (self.path / "live").mkdir(mode=0o700)

    def run(self, *words, on=True, status=0, env=None, seconds=180):
        wanted = {"VACCEL_PROF_ENABLED": "enabled"} if on else {}
        done = subprocess.run([str(w) for w in words], cwd=self.path, env={**self.env, **wanted, **(env or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
        assert status is None or done.returncode == status, f"{done.returncode}\n{done.stdout[-2000:]}{done.stderr}"
        return done

    def query(self, sql):
        return json.loads(self.run(KYMO, "query", "-f", "json", "latest", sql, on=False).stdout)

    def recordings(self):
        return list((self.path / "live").iterdir())


@pytest.fixture
def place():
    place = Place()
    yield place
    shutil.rmtree(place.path, ignore_errors=True)


@pytest.fixture(scope="module")
def checks(tmp_path_factory):
    return compile_to(tmp_path_factory.mktemp("checks") / "vaccel_checks", HERE / "vaccel_checks.c")


@pytest.fixture(scope="module")
def naive(tmp_path_factory):
    out = tmp_path_factory.mktemp("naive") / "naive_checks"
    return compile_to(out, HERE / "vaccel_checks.c", HERE / "naive_prof.c", libraries=False)


# --- what has to hold ----------------------------------------------------------------------------------------

# The check, how often, the same for long, and how often a naive version fails at it.
CHECKS = [
    ("recursion", 1, 1, 1),
    ("nesting", 1, 1, 1),
    ("threads", 50_000, 1_000_000, 50_000),
    ("crowd", 1, 1, None),
    ("races", 1, 1, 1),
    ("clearing", 1, 1, 1),
    ("starts", 10_000_000, 100_000_000, 1_000_000),
    ("cycles", 500_000, 10_000_000, 100_000),
    ("statics", 500_000, 10_000_000, 100_000),
    ("init_and_destroy", 1, 1, 1),
    ("arguments", 1, 1, 1),
    ("by_name", 1, 1, 1),
    ("early_return", 1, 1, None),
    ("forks", 1, 1, 1),
]


@pytest.mark.parametrize("name, count, soak_count", [row[:3] for row in CHECKS], ids=[row[0] for row in CHECKS])
def test_it_holds(place, checks, name, count, soak_count):
    place.run(checks, name, soak_count if SOAK else count)


@pytest.mark.parametrize("name, count", [(row[0], row[3]) for row in CHECKS if row[3]], ids=[r[0] for r in CHECKS if r[3]])
def test_it_does_not_hold_for_a_naive_version(place, naive, name, count):
    assert place.run(naive, name, count, status=None).returncode != 0


def test_names_and_slots_stay_flat(place, checks):
    place.run(checks, "cycles", 30_000)
    process, = (place.path / "live").glob("*/p*")
    assert (process / "names").stat().st_size <= 64 << 10
    assert sum(f.stat().st_size for f in process.glob("*.totals")) <= 64 << 10
    assert place.query("SELECT name, count FROM trace.regions") == [{"name": "cycle", "count": 30000}]


def test_the_recording_says_the_same(place, checks):
    lines = LINE.findall(place.run(checks, "threads", 1000).stdout)
    row, = place.query("SELECT name, count, total_ns, open FROM trace.regions")
    name, total, count = lines[-1]
    assert (row["name"], row["count"], row["open"]) == (name, int(count), 0) == ("fixed", 40005, 0)
    assert abs(row["total_ns"] - int(total)) <= row["total_ns"] * 0.01 + 1000


def test_a_region_left_by_an_early_return_is_open(place, checks):
    place.run(checks, "at_exit")
    assert place.query("SELECT name, count, open FROM trace.regions") == [{"name": "fixed", "count": 1, "open": 1}]
    assert place.query("SELECT name FROM trace.open_zones") == [{"name": "fixed"}]


def test_both_sides_of_a_fork_are_recorded(place, checks):
    place.run(checks, "forks")
    rows = place.query("SELECT count FROM trace.regions ORDER BY count")
    assert [row["count"] for row in rows] == [2, 10]


def test_the_plugin_that_owns_the_region_may_go(place, tmp_path):
    plugin = compile_to(tmp_path / "plugin.so", "-shared", "-fPIC", HERE / "plugin.c")
    host = compile_to(tmp_path / "host", HERE / "plugin_host.c", libraries=False)
    done = place.run(host, plugin, 50)
    assert done.stdout == "unloaded\n" and done.stderr == ""
    assert place.query("SELECT name, count, open FROM trace.regions") == [{"name": "plugin_op", "count": 1000, "open": 1}]


# --- on and off ----------------------------------------------------------------------------------------------

ON = ["enabled", "ENABLED", "1", "true", "Yes", "on"]
OFF = ["", "0", "disabled", "false", "no", "OFF"]


@pytest.mark.parametrize("variable", ["VACCEL_PROF_ENABLED", "VACCEL_PROFILING_ENABLED"])
def test_words_that_turn_it_on(place, checks, variable):
    for word in ON:
        done = place.run(checks, "lines", 1, on=False, env={variable: word})
        assert LINE.fullmatch(done.stdout.strip()), (word, done.stdout)
        assert done.stderr == ""


@pytest.mark.parametrize("env", [{}, *({"VACCEL_PROF_ENABLED": word} for word in OFF)], ids=lambda env: str(list(env.values())))
def test_off_is_silent_and_leaves_nothing(place, checks, env):
    done = place.run(checks, "off", on=False, env=env)
    assert (done.stdout, done.stderr) == ("", "") and place.recordings() == []


def test_a_word_it_does_not_know_warns_once_and_means_off(place, checks):
    done = place.run(checks, "off", on=False, env={"VACCEL_PROF_ENABLED": "perhaps"})
    assert done.stdout == "" and place.recordings() == []
    assert done.stderr == "kymo: VACCEL_PROF_ENABLED is neither enabled nor disabled, profiling by it stays off: perhaps\n"


def test_kymo_alone_does_not_turn_them_on(place, checks):
    done = place.run(checks, "off", on=False, env={"KYMO": "on"})
    assert done.stdout == ""
    assert place.query("SELECT count(*) AS n FROM trace.regions") == [{"n": 0}]


def test_the_summary_names_the_variable_that_the_regions_wait_for(place, checks):
    hint = "  The program uses regions of vaccel_prof.h, which are disabled:\n  VACCEL_PROF_ENABLED=enabled records them.\n"
    assert hint in place.run(KYMO, "run", "--", checks, "off", on=False).stderr
    assert "VACCEL" not in place.run(KYMO, "run", "--", checks, "nesting", 1).stderr
    assert "VACCEL" not in place.run(KYMO, "run", "--", "true", on=False).stderr


def test_kymo_off_wins(place, checks):
    done = place.run(checks, "off", env={"KYMO": "off"})
    assert (done.stdout, done.stderr) == ("", "") and place.recordings() == []


# --- the line ------------------------------------------------------------------------------------------------

def test_the_line_is_vaccels_in_local_time_and_growing(place, checks):
    done = place.run(checks, "lines", 20, env={"TZ": "XYZ-5:45"})
    found = [LINE.fullmatch(line) for line in done.stdout.splitlines()]
    assert len(found) == 20 and all(found)
    assert [int(m[3]) for m in found] == list(range(1, 21))
    totals = [int(m[2]) for m in found]
    assert totals == sorted(totals)
    clock = subprocess.run(["date", "+%Y.%m.%d-%H"], env={"TZ": "XYZ-5:45"}, capture_output=True, text=True).stdout.strip()
    before = subprocess.run(["date", "-d", "1 hour ago", "+%Y.%m.%d-%H"], env={"TZ": "XYZ-5:45"}, capture_output=True,
                            text=True).stdout.strip()
    assert done.stdout.startswith((clock, before))


def test_a_line_is_one_write(place, checks):
    ours, its = os.pipe2(os.O_DIRECT)  # a read gives one write
    packets = []

    def read_all():
        while packet := os.read(ours, 65536):
            packets.append(packet.decode())

    reader = threading.Thread(target=read_all)
    reader.start()
    subprocess.run([str(checks), "lines", "50"], env={**place.env, "VACCEL_PROF_ENABLED": "1"}, stdout=its, check=True)
    os.close(its)
    reader.join()
    os.close(ours)
    assert len(packets) == 50 and all(LINE.fullmatch(packet.rstrip("\n")) and packet.endswith("\n") for packet in packets)


def test_at_exit_the_line_still_comes_after_what_was_printed_before(place, checks):
    out = place.run(checks, "at_exit").stdout
    assert out.startswith("before ") and LINE.fullmatch(out.removeprefix("before ").rstrip("\n"))[3] == "1"


def test_lines_go_to_the_log_file(place, checks):
    for _ in range(2):
        assert place.run(checks, "lines", 3, env={"VACCEL_LOG_FILE": "prof.log"}).stdout == ""
    lines = (place.path / "prof.log").read_text().splitlines()
    assert [LINE.fullmatch(line)[3] for line in lines] == ["1", "2", "3", "1", "2", "3"]


def test_a_log_file_that_cannot_be_written_is_said_once(place, checks):
    done = place.run(checks, "lines", 3, env={"VACCEL_LOG_FILE": "/no/such/place"})
    assert len(LINE.findall(done.stdout)) == 3
    assert done.stderr == "kymo: lines go to stdout: cannot write VACCEL_LOG_FILE /no/such/place\n"


# --- the header, and programs that never saw it ----------------------------------------------------------------

USE = """
#include <vaccel_prof.h>
static struct vaccel_prof_region region = VACCEL_PROF_REGION_INIT("both");
int main(void)
{
\treturn vaccel_prof_region_start(&region) + vaccel_prof_region_stop(&region) + (region.nr_entries != 1);
}
"""


@pytest.mark.parametrize("standard", ["c99", "c11", "gnu17", "c++11", "c++17", "c++20"])
def test_the_header_is_clean(place, tmp_path, standard):
    plus = "++" in standard
    source = tmp_path / ("use.cpp" if plus else "use.c")
    source.write_text(USE)
    for compiler in ("c++", "clang++") if plus else ("cc", "clang"):
        if not shutil.which(compiler):
            continue
        compile_to(tmp_path / "use", f"-std={standard}", "-U_GNU_SOURCE", *STRICT, source, compiler=compiler)
        place.run(tmp_path / "use")


def test_a_program_that_was_built_long_ago_is_preloaded(place, tmp_path):
    compile_to(tmp_path / "libvaccel_old.so", "-shared", "-fPIC", HERE / "naive_prof.c", libraries=False)
    old = compile_to(tmp_path / "old", HERE / "old_program.c", f"-L{tmp_path}", "-lvaccel_old", f"-Wl,-rpath,{tmp_path}",
                     libraries=False)
    done = place.run(old, env={"LD_PRELOAD": str(BUILD / "libkymo_compat.so")})
    first, *lines = done.stdout.splitlines()
    assert first == "old_static 3, old_made 3" and done.stderr == ""
    assert [LINE.fullmatch(line)[1] for line in lines] == ["old_static", "old_made"]
    rows = place.query("SELECT name, count FROM trace.regions ORDER BY name")
    assert rows == [{"name": "old_made", "count": 3}, {"name": "old_static", "count": 3}]


# --- the code of the documentation -------------------------------------------------------------------------------

def seed_blocks():
    found = sorted(SEEDS.glob("000_*.txt"))
    if not found:
        pytest.skip(f"there is no {SEEDS}/000_*.txt: the documentation's code blocks are not in this tree")
    return re.findall(r"^```c\n(.*?)^```", found[0].read_text(), re.S | re.M)


def test_the_documentations_example_runs_as_it_stands(place, tmp_path):
    example, = (block for block in seed_blocks() if "void my_vaccel_operation" in block)
    for name, compiler in (("example.c", "cc"), ("example.cpp", "c++")):
        (tmp_path / name).write_text(example + "\nint main(void) { my_vaccel_operation(); my_vaccel_operation(); return 0; }\n")
        compile_to(tmp_path / "example", tmp_path / name, compiler=compiler)
        lines = LINE.findall(place.run(tmp_path / "example").stdout)
        assert [(line[0], line[2]) for line in lines] == [("my_operation", "1")] * 2
    assert place.query("SELECT name, count FROM trace.regions") == [{"name": "my_operation", "count": 2}]


def test_the_documentations_steps_run_as_they_stand(place, tmp_path):
    include, *steps = seed_blocks()[:6]
    assert "vaccel_prof_region_destroy" in steps[-1]
    (tmp_path / "steps.c").write_text(f"{include}\nint main(void)\n{{\n{''.join(steps)}return 0;\n}}\n")
    compile_to(tmp_path / "steps", tmp_path / "steps.c")
    assert LINE.fullmatch(place.run(tmp_path / "steps").stdout.strip())[1] == "my_operation"


# What the excerpt leaves out: the plugin's own includes and the head of its function, the filling of the input, and
# what is done with the output.
LEFT_OUT = ["""
#include <cstdint>
#include <unistd.h>
#include <vector>
namespace torch {
struct Tensor {
\tstd::vector<float> values{1, 2, 3};
\tTensor to(int) { return *this; }
\tint64_t numel() const { return (int64_t)values.size(); }
};
namespace jit {
struct IValue {
\tIValue() {}
\tIValue(const Tensor &) {}
};
struct Module {
\tIValue forward(const std::vector<IValue> &) { usleep(20000); return IValue(); }
};
}
}
struct tensor { size_t size; void *data; };
static struct vaccel_prof_region torch_model_stats = VACCEL_PROF_REGION_INIT("torch_model");
static int tensors_to_vaccel(torch::Tensor &from, struct tensor **to, int)
{
\t(*to)->data = from.values.data();
\treturn 0;
}
static int run(struct tensor **in_tensors, struct tensor **out_tensors, int nr_outputs)
{
    torch::jit::Module model_trace;
    int device = 0, ret = 0;
""", "    (void)input_outer_size; (void)masks_outer_size;\n", "    torch::Tensor output;\n"]
REST = """    return ret + (data[0] != 1) + (num_elements != 3);
}
int main()
{
    struct tensor one = {1, nullptr}, two = {1, nullptr}, *in[] = {&one, &two}, *out = &one;
    return run(in, &out, 1) + run(in, &out, 1);
}
"""


def test_the_documentations_plugin_runs_as_it_stands_in_cxx(place, tmp_path):
    blocks = seed_blocks()
    include, plugin = blocks[0], blocks[-1]
    pieces = plugin.split("[..]\n")
    assert len(pieces) == 4
    text = pieces[0] + "".join(left_out + piece for left_out, piece in zip(LEFT_OUT, pieces[1:]))
    (tmp_path / "plugin.cpp").write_text(include + text + REST)
    compile_to(tmp_path / "plugin", "-std=c++17", tmp_path / "plugin.cpp", compiler="c++")
    lines = LINE.findall(place.run(tmp_path / "plugin").stdout)
    # torch_model has no entries, and so no line.
    assert [(line[0], line[2]) for line in lines] == [(name, n) for n in "12" for name in ("torch_input", "torch_run", "torch_out")]
    assert int(lines[4][1]) >= 40_000_000 > int(lines[5][1])
    rows = place.query("SELECT name, count FROM trace.regions ORDER BY name")
    assert rows == [{"name": name, "count": 2} for name in ("torch_input", "torch_out", "torch_run")]
