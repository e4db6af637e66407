"""docs/c-api.md is a program: its blocks are compiled as C11 and C++17, and run."""
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN") or ROOT / "build/kymo").resolve()
BUILD = KYMO.parent
STRICT = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Wno-unused-value"]
LANGUAGES = [("cc", "c11", "page.c"), ("c++", "c++17", "page.cpp")]
LINE = re.compile(r"\[kymo\] (.+): count: (\d+) total: (\d+) ns mean: ([\d.]+) ns min: (\d+) ns p50: (\d+) ns p99: (\d+) ns "
                  r"max: (\d+) ns stddev: ([\d.]+) ns open: (\d+) dropped: (\d+) own_cost: (\d+) ns per entry")


def page():
    return "\n".join(re.findall(r"^```c\n(.*?)^```", (ROOT / "docs/c-api.md").read_text(), re.S | re.M))


def build(tmp_path, language, *words, text=None, libraries=True):
    compiler, standard, name = language
    (tmp_path / name).write_text(text or page())
    link = [f"-L{BUILD}", "-lkymo", f"-Wl,-rpath,{BUILD}", "-lpthread"] if libraries else []
    command = [compiler, f"-std={standard}", "-O1", *STRICT, *words, f"-I{ROOT}/include", tmp_path / name, *link,
               "-o", tmp_path / "page"]
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return tmp_path / "page"


@pytest.fixture
def run(tmp_path):
    live = tmp_path / "live"
    live.mkdir(mode=0o700)
    env = {k: v for k, v in os.environ.items() if not k.startswith("KYMO")} | {
        "KYMO_DIR": str(live), "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}

    def go(*words, **more):
        done = subprocess.run([str(w) for w in words], cwd=tmp_path, env=env | more, capture_output=True, text=True)
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return done.stdout
    return go


def query(run, sql):
    return json.loads(run(KYMO, "query", "-f", "json", "latest", sql))


@pytest.mark.parametrize("language", LANGUAGES, ids=["c11", "c++17"])
def test_the_page_is_a_program(tmp_path, run, language):
    program = build(tmp_path, language)
    assert run(program) == ""  # not recorded: nothing to print
    found = [LINE.fullmatch(line) for line in run(program, KYMO="on").splitlines()]
    assert [(m[1], m[2], m[10]) for m in found] == [("parse", "1", "0"), ("load", "2", "0")]
    assert all(int(m[5]) <= int(m[6]) <= int(m[7]) <= int(m[8]) and int(m[12]) > 0 for m in found)
    counts = {row["name"]: row["count"] for row in query(run, "SELECT name, count FROM trace.regions")}
    assert counts == {"tokenize": 1, "token": 6, "answer": 1, "load": 2, "stage 1": 2, "parse": 1, "request": 1}
    assert query(run, "SELECT text, value FROM trace.zone_text WHERE name = 'answer' ORDER BY text NULLS LAST") == [
        {"text": "/index", "value": None}, {"text": None, "value": 512}]
    assert query(run, "SELECT count(*) AS n FROM trace.steps") == [{"n": 3}]
    assert query(run, "SELECT path, ms FROM app.requests") == [{"path": "/", "ms": 1.5}]


@pytest.mark.parametrize("language", LANGUAGES, ids=["c11", "c++17"])
def test_the_page_compiles_away(tmp_path, run, language):
    program = build(tmp_path, language, "-DKYMO_DISABLE", "-Wno-unused-function", libraries=False)
    assert run(program, KYMO="on") == ""


TOTALS = """
#include <kymo/kymo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static struct kymo_region region = KYMO_REGION_INIT("counted");
static int done;
static void *work(void *context)
{
\tfor (long i = 0; i < (long)(size_t)context; i++) {
\t\tkymo_region_start(&region);
\t\tkymo_region_stop(&region);
\t}
\treturn NULL;
}
static void *ask(void *context)
{
\tuint64_t before = 0;
\twhile (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
\t\tstruct kymo_totals totals;
\t\ttotals.bytes = sizeof(totals);
\t\tif (kymo_region_totals(&region, &totals) || totals.count < before || totals.open > 4)
\t\t\tabort();
\t\tbefore = totals.count;
\t}
\treturn context;
}
int main(void)
{
\tpthread_t threads[4], asker;
\tstruct kymo_totals totals;
\tpthread_create(&asker, NULL, ask, NULL);
\tfor (size_t i = 0; i < 4; i++)
\t\tpthread_create(&threads[i], NULL, work, (void *)(100001 + i));
\tfor (size_t i = 0; i < 4; i++)
\t\tpthread_join(threads[i], NULL);
\t__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
\tpthread_join(asker, NULL);
\twork((void *)7);
\tkymo_region_start(&region);
\ttotals.bytes = sizeof(totals);
\tkymo_region_totals(&region, &totals);
\tprintf("%llu %llu %llu %llu\\n", (unsigned long long)totals.count, (unsigned long long)totals.total_ns,
\t       (unsigned long long)totals.open, (unsigned long long)totals.p50_ns);
\treturn 0;
}
"""


@pytest.mark.parametrize("keep", ["flight", "all"])
def test_totals_are_exact_while_others_record(tmp_path, run, keep):
    program = build(tmp_path, LANGUAGES[0], "-D_GNU_SOURCE", text=TOTALS)
    count, total, opened, p50 = map(int, run(program, KYMO="on", KYMO_KEEP=keep).split())
    assert (count, opened) == (400017, 1) and p50 > 0
    row, = query(run, "SELECT count, total_ns, p50_ns, own_cost_ns FROM trace.regions")
    assert row["count"] == 400017 and abs(row["total_ns"] - total) <= 0.01 * total + 1000
    assert abs(row["p50_ns"] - p50) <= 1 and row["own_cost_ns"] > 0


MADE = """
#include <kymo/kymo.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
\tstruct kymo_region *first = NULL;
\tstruct kymo_totals totals;
\tint status = 0;
\tfor (int i = 0; i < 300000; i++) {
\t\tchar name[32];
\t\tstruct kymo_region mine, *region;
\t\tsnprintf(name, sizeof(name), "made %d", i % 3);
\t\tregion = kymo_region_create(name);
\t\tif (kymo_region_init(&mine, name) || !region || mine.name == name || strcmp(region->name, name))
\t\t\treturn 1;
\t\tmemset(name, 'x', sizeof(name)); /* the text goes away */
\t\tfirst = first ? first : region;
\t\tif (i % 3 == 0 && region != first)
\t\t\treturn 2;
\t\tkymo_region_start(&mine);
\t\tif (kymo_region_stop(region)) /* one name, one region */
\t\t\treturn 3;
\t}
\tif (fork() == 0) {
\t\ttotals.bytes = sizeof(totals);
\t\tkymo_region_start(first);
\t\tkymo_region_stop(first);
\t\tkymo_region_totals(first, &totals);
\t\t_exit(totals.count != 1); /* of the child alone */
\t}
\twait(&status);
\treturn status || kymo_region_print(first);
}
"""


def test_names_that_are_made_at_run_time_are_kept_once(tmp_path, run):
    program = build(tmp_path, LANGUAGES[0], "-D_GNU_SOURCE", text=MADE)
    line = LINE.fullmatch(run(program, KYMO="on").strip())
    assert (line[1], line[2]) == ("made 0", "100000")
    rows = query(run, "SELECT name, sum(count)::BIGINT AS n FROM trace.regions GROUP BY 1 ORDER BY 1")
    assert rows == [{"name": "made 0", "n": 100001}, {"name": "made 1", "n": 100000}, {"name": "made 2", "n": 100000}]
