"""Programs of all kinds, and switches from outside."""
import shutil
import subprocess
import time

import pytest
from conftest import KYMO, PROGS, PYTHON, ROOT

CC = shutil.which("cc")


def build(lab, source, name, *options):
    if not CC:
        pytest.skip("there is no C compiler")
    path = lab.home / name
    subprocess.run([CC, "-O1", "-D_GNU_SOURCE", "-I", ROOT / "src", "-I", ROOT / "include", "-o", path, source, *options], check=True)
    return path


def test_a_program_that_is_not_position_independent_is_switched(lab):
    """It takes the address of malloc, so that its own stub is what dlsym would give."""
    source = lab.home / "fixed.c"
    source.write_text("""
        #include <dlfcn.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include "record/memory/memory.h"
        void *(*volatile take)(size_t) = malloc;
        void (*volatile give)(void *) = free;
        int main(int argc, char **argv) {
            void *library = dlopen(argv[argc - 1], RTLD_NOW);
            int (*start)(struct kymo_memory_watch *, enum kymo_memory_mode) = (void *)dlsym(library, "kymo_memory_start");
            void (*stop)(struct kymo_memory_watch *) = (void *)dlsym(library, "kymo_memory_stop");
            void (*look)(const struct kymo_memory_watch *, struct kymo_memory_stats *) = (void *)dlsym(library, "kymo_memory_read");
            struct kymo_memory_watch watch;
            struct kymo_memory_stats stats;
            void *kept[10];
            if (start(&watch, KYMO_MEMORY_EXACT)) return 1;
            for (int i = 0; i < 10; i++) kept[i] = malloc(1000);
            for (int i = 0; i < 4; i++) free(kept[i]);
            give(take(10));
            look(&watch, &stats);
            stop(&watch);
            printf("%d %d\\n", (int)stats.live_bytes, (int)stats.frees >= 4);
            return 0;
        }""")
    program = build(lab, source, "fixed", "-no-pie", "-fno-pie", "-ldl", "-fno-builtin")
    done = subprocess.run([program, KYMO.parent / "libkymo_memory.so.0"], env={**lab.env, "KYMO": "off"}, capture_output=True,
                          text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "6000 1\n"), done.stderr


def test_a_library_that_is_found_by_the_programs_own_path_is_found_and_watched(lab):
    """dlopen by name goes by the RUNPATH of its caller, which the redirected call must stay."""
    folder = lab.home / "own"
    folder.mkdir()
    shutil.copy(PROGS / "memory_plugin.so", folder / "memory_plugin.so")
    source = lab.home / "named.c"
    source.write_text("""
        #include <dlfcn.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include "record/memory/memory.h"
        int main(int argc, char **argv) {
            void *library = dlopen(argv[argc - 1], RTLD_NOW), *plugin;
            int (*start)(struct kymo_memory_watch *, enum kymo_memory_mode) = (void *)dlsym(library, "kymo_memory_start");
            void (*look)(const struct kymo_memory_watch *, struct kymo_memory_stats *) = (void *)dlsym(library, "kymo_memory_read");
            struct kymo_memory_watch watch;
            struct kymo_memory_stats before, after;
            void *(*make)(size_t);
            if (start(&watch, KYMO_MEMORY_SAMPLED)) return 1;
            plugin = dlopen("memory_plugin.so", RTLD_NOW);
            if (!plugin) { puts(dlerror()); return 2; }
            make = (void *(*)(size_t))dlsym(plugin, "plugin_make");
            free(malloc(100000)); /* this thread's next sample: the plugin's calls are redirected now */
            look(&watch, &before);
            make(200000);
            look(&watch, &after);
            printf("%d\\n", (int)(after.live_bytes - before.live_bytes));
            return 0;
        }""")
    program = build(lab, source, "named", "-ldl", "-fno-builtin", f"-Wl,-rpath,{folder},--enable-new-dtags")
    done = subprocess.run([program, KYMO.parent / "libkymo_memory.so.0"], env={**lab.env, "KYMO": "off"}, capture_output=True,
                          text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "200000\n"), done.stderr


def test_kymo_config_turns_it_off_and_on_again(lab):
    program = lab.home / "steady.py"
    program.write_text("import time\nprint(flush=True)\nwhile True:\n    bytearray(500_000)\n"
                       "    time.sleep(.001)\n")
    path = lab.home / "steady"
    child = subprocess.Popen([KYMO, "run", "-q", "--memory", "-o", path, "--", PYTHON, program], env=lab.env, cwd=lab.home,
                             stdout=subprocess.PIPE, text=True)
    try:
        child.stdout.readline()
        until(lambda: kinds(lab, path).get(0, 0) > 10)
        pid = lab.ask(path, "SELECT DISTINCT pid FROM alloc.rows")[0]["pid"]
        config(lab, pid, "memory=off")
        until(lambda: kinds(lab, path).get(6) == 1)
        config(lab, pid, "memory=on")
        until(lambda: kinds(lab, path).get(5) == 2)
    finally:
        child.terminate()
        child.wait(60)
        child.stdout.close()
    assert kinds(lab, path)[5] == 2 and kinds(lab, path)[6] == 1


def kinds(lab, path):
    """How many rows there are of each kind."""
    return {int(row["kind"]): int(row["n"]) for row in
            lab.ask(path, "SELECT place & 7 AS kind, count(*) AS n FROM alloc.rows GROUP BY 1")}


def config(lab, pid, word):
    subprocess.run([KYMO, "config", str(pid), word], env=lab.env, cwd=lab.home, check=True, capture_output=True, timeout=60)


def until(is_so, seconds=60):
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(.05)


def test_importing_torch_is_counted_as_a_library_below_counts_it(lab):
    """Within half a percent: maps are in ours alone, and the two do not begin and end at the same moment."""
    pytest.importorskip("torch.nn", reason="torch is not installed")
    done, path = lab.run(PYTHON, "-c", "import torch", options=("--memory=exact",), LD_PRELOAD=str(PROGS / "memory_count.so"))
    counted = max(int(line.split()[0]) for line in done.stderr.splitlines() if line.replace(" ", "").isdigit())
    seen = kinds(lab, path)[0]
    assert abs(seen - counted) < counted / 200, (seen, counted)
    source, = lab.ask(path, "SELECT DISTINCT source FROM alloc.timeline LIMIT 1")
    assert source["source"] == "malloc, exact, from the start"


def test_a_forked_child_begins_without_a_look_at_its_environment(lab):
    """A shell moves its environment with realloc(): a row that is written there must not read it."""
    for options in (("--memory",), ("--memory=exact",)):
        done, _ = lab.run(PROGS / "fork_environment", options=options)
        assert done.stdout == "ok\n"
