"""Native stacks that the kernel samples: C, C++, threads, children, and Python with what it calls."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import KYMO, clean

CC = shutil.which("cc")
pytestmark = [pytest.mark.skipif(not CC, reason="no C compiler"), pytest.mark.usefixtures("perf_events")]

SPIN = """
    #include <stdlib.h>
    #include <time.h>
    static volatile unsigned long sink;
    static double now(void)
    {
        struct timespec t;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return t.tv_sec + t.tv_nsec / 1e9;
    }
    __attribute__((noinline)) static void heavy_inner(unsigned long n)
    {
        for (unsigned long i = 0; i < n; i++)
            sink += i * i;
    }
    __attribute__((noinline)) void heavy_work(void)
    {
        heavy_inner(300000);
        sink++;
    }
    __attribute__((noinline)) void light_work(void)
    {
        for (unsigned long i = 0; i < 60000; i++)
            sink ^= i;
    }
    int main(int argc, char **argv)
    {
        double end = now() + (argc > 1 ? strtod(argv[1], NULL) : 0.4);
        while (now() < end) {
            heavy_work();
            light_work();
        }
        return 0;
    }
"""


def query(target, sql):
    done = subprocess.run([KYMO, "query", str(target), "-f", "json", sql], env=clean(os.environ), capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def complete_share(recording, where="true"):
    row = query(recording, f"SELECT avg(complete::INT) AS share, count(*) AS n FROM native.samples WHERE {where}")[0]
    assert row["n"] >= 20, row
    return row["share"]


def functions(recording, where="true"):
    """Functions by their share of CPU time, the costliest first."""
    rows = query(recording, f"""
        SELECT regexp_replace(stack[1], ' \\(.*', '') AS f, sum(weight_ns) / sum(sum(weight_ns)) OVER () AS share
        FROM native.samples WHERE {where} AND len(stack) > 0 AND activity = 'running' GROUP BY 1 ORDER BY 2 DESC""")
    return {row["f"]: row["share"] for row in rows}


# ---- C and C++


@pytest.mark.parametrize("flags", [("-O2", "-g"), ("-O2",), ("-O0", "-g"), ("-O2", "-fno-omit-frame-pointer"),
                                   ("-O2", "-fomit-frame-pointer", "-no-pie"), ("-O2", "-static")], ids=" ".join)
def test_a_program_in_c_has_its_costliest_function(build, record, flags):
    recording = record(build(SPIN, *flags))
    found = functions(recording)
    assert list(found)[0] == "heavy_inner", found
    assert found["heavy_inner"] > 0.5
    assert complete_share(recording) >= 0.95
    stack = query(recording, "SELECT stack FROM native.samples WHERE stack[1] LIKE 'heavy_inner%' LIMIT 1")[0]["stack"]
    names = [frame.split(" (")[0] for frame in stack]
    assert names[:3] == ["heavy_inner", "heavy_work", "main"]
    if "-g" in flags:
        assert re.search(r"heavy_inner \(.*/prog\.c:\d+\)$", stack[0])


def test_a_stripped_program_has_functions_by_address(build, record):
    recording = record(build(SPIN, "-O2", "-s"))
    found = functions(recording)
    top = list(found)[0]
    assert re.fullmatch(r"prog\+0x[0-9a-f]+", top) and found[top] > 0.5, found
    assert complete_share(recording) >= 0.95


def test_the_first_screen_names_the_function(build, record):
    record(build(SPIN, "-O2", "-g"))
    assert re.search(r"heavy_inner \(prog\.c:\d+\)", record.err), record.err


def test_a_program_of_150_ms_has_an_answer(build, record):
    recording = record(build(SPIN, "-O2", "-g"), "0.15")
    assert query(recording, "SELECT count(*) AS n FROM native.samples")[0]["n"] >= 20
    assert list(functions(recording))[0] == "heavy_inner"
    assert "heavy_inner" in record.err


def test_templates_and_inlined_functions_are_frames(build, record):
    program = build("""
        #include <algorithm>
        #include <vector>
        #include <ctime>
        struct Pair { unsigned key; };
        static inline __attribute__((always_inline)) unsigned mix(unsigned x)
        {
            for (int i = 0; i < 50; i++)
                x = x * 1664525u + 1013904223u;
            return x;
        }
        template <typename T, int N> __attribute__((noinline)) unsigned churn(std::vector<T> &v)
        {
            unsigned sum = 0;
            for (auto &p : v)
                sum += mix(p.key + N);
            return sum;
        }
        volatile unsigned sink;
        int main()
        {
            std::vector<Pair> v(100000);
            while (clock() < CLOCKS_PER_SEC * 2 / 5)
                sink = sink + churn<Pair, 7>(v);
        }
    """, "c++", "-O2", "-g")
    recording = record(program)
    rows = query(recording, "SELECT stack FROM native.samples WHERE stack[1] LIKE 'mix%' LIMIT 1")
    assert rows, functions(recording)
    stack = rows[0]["stack"]
    assert stack[0].startswith("mix (") and "churn<Pair, 7>" in stack[1] and stack[2].startswith("main (")
    inlined = query(recording, "SELECT DISTINCT inlined FROM native.frames WHERE func LIKE 'mix%'")
    assert inlined == [{"inlined": True}]
    assert complete_share(recording) >= 0.95


def test_threads_are_sampled_to_their_start(build, record):
    recording = record(build("""
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <time.h>
        static volatile unsigned long sink;
        __attribute__((noinline)) static void worker_loop(void)
        {
            struct timespec t = { 0 };
            while (t.tv_sec * 1000000000l + t.tv_nsec < 200000000l) {
                for (int i = 0; i < 100000; i++)
                    sink += i;
                clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
            }
        }
        static void *run(void *name)
        {
            pthread_setname_np(pthread_self(), name);
            worker_loop();
            return NULL;
        }
        int main(void)
        {
            char *names[] = { "alpha", "beta", "gamma" };
            pthread_t t[3];
            for (int i = 0; i < 3; i++)
                pthread_create(&t[i], NULL, run, names[i]);
            for (int i = 0; i < 3; i++)
                pthread_join(t[i], NULL);
        }
    """, "-O2", "-g"))
    rows = query(recording, "SELECT thread, count(DISTINCT tid) AS n, sum(weight_ns) AS ns FROM native.samples "
                            "WHERE stack[1] LIKE 'worker_loop%' GROUP BY 1 ORDER BY 1")
    assert [row["thread"] for row in rows] == ["alpha", "beta", "gamma"]
    assert all(row["ns"] > 50e6 for row in rows), rows
    assert complete_share(recording) >= 0.95
    stack = query(recording, "SELECT stack FROM native.samples WHERE thread = 'beta' AND stack[1] LIKE 'worker_loop%' LIMIT 1")
    # A stripped libc has no name for it.
    assert any("start_thread" in frame or "libc.so" in frame for frame in stack[0]["stack"]), stack


def test_children_and_what_they_execute_are_sampled(build, record, tmp_path):
    child = build(SPIN, "-O2", "-g", name="child")
    parent = build(f"""
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void)
        {{
            for (int i = 0; i < 2; i++)
                if (!fork()) {{
                    execl("{child}", "child", "0.2", (char *)0);
                    _exit(1);
                }}
            while (wait(0) > 0)
                ;
        }}
    """, "-O2", name="parent")
    recording = record(parent)
    rows = query(recording, "SELECT pid, any_value(thread) AS thread, count(*) AS n FROM native.samples "
                            "WHERE stack[1] LIKE 'heavy_inner%' GROUP BY 1")
    assert len(rows) == 2 and all(row["thread"] == "child" and row["n"] >= 10 for row in rows), rows
    # Children have a sample every 10 ms from their start, although the program has more at first: no time counts twice or not at all.
    rows = query(recording, "SELECT pid, sum(weight_ns) / 1e9 AS s, min(weight_ns) AS w FROM native.samples "
                            "WHERE activity = 'running' GROUP BY 1")
    assert all(0.1 < row["s"] < 0.4 and row["w"] >= 1e7 for row in rows if row["s"] > 0.05), rows


def test_a_storm_of_forks_loses_nothing_but_samples(build, record):
    recording = record(build("""
        #include <sys/wait.h>
        #include <time.h>
        #include <unistd.h>
        static volatile unsigned long sink;
        __attribute__((noinline)) static void in_child(void)
        {
            while (clock() < CLOCKS_PER_SEC / 50)
                sink++;
        }
        int main(void)
        {
            for (int i = 0; i < 100; i++) {
                if (!fork()) {
                    in_child();
                    _exit(0);
                }
                if (i % 10 == 9)
                    while (wait(0) > 0)
                        ;
            }
            while (wait(0) > 0)
                ;
        }
    """, "-O1", "-g"))
    in_child = "len(list_filter(stack, x -> x LIKE 'in_child%')) > 0"
    rows = query(recording, f"SELECT count(DISTINCT pid) AS n FROM native.samples WHERE {in_child}")
    assert rows[0]["n"] >= 30, rows
    assert complete_share(recording, in_child) >= 0.95


def test_a_killed_program_has_its_samples(build, record):
    recording = record(build("""
        #include <signal.h>
        #include <time.h>
        static volatile unsigned long sink;
        __attribute__((noinline)) static void before_the_end(void)
        {
            while (clock() < CLOCKS_PER_SEC / 4)
                sink++;
        }
        int main(void) { before_the_end(); raise(SIGKILL); }
    """, "-O1", "-g"), status=-signal.SIGKILL)
    assert any("before_the_end" in frame for row in query(recording, "SELECT stack FROM native.samples") for frame in row["stack"])


def test_the_functions_are_those_of_perf(build, record, tmp_path):
    perf = shutil.which("perf")
    if not perf:
        pytest.skip("perf is not installed")
    program = build(SPIN, "-O2", "-g")
    data = tmp_path / "perf.data"
    done = subprocess.run([perf, "record", "-q", "-e", "task-clock:u", "-F", "1000", "-o", data, program], capture_output=True,
                          text=True, timeout=60, check=False)
    script = subprocess.run([perf, "script", "-i", data, "-F", "ip,sym"], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode or script.returncode or not script.stdout.strip():
        pytest.skip(f"perf does not work here: {done.stderr or script.stderr}")
    seen = [line.split()[1].split(".")[0] for line in script.stdout.splitlines() if len(line.split()) > 1]
    theirs = {name: seen.count(name) / len(seen) for name in set(seen)}
    ours = functions(record(program), "NOT kernel")
    for name in ("heavy_inner", "light_work"):
        assert abs(ours[name] - theirs[name]) < 0.12, (ours, theirs)


# ---- how it is switched, refused and attached


def test_samples_of_a_32_bit_program_are_counted_as_dropped(record, tmp_path):
    (tmp_path / "loop.S").write_text("""
        .globl _start
        _start: mov $1000000000, %ecx
        1: dec %ecx
        jnz 1b
        mov $1, %eax
        xor %ebx, %ebx
        int $0x80
        .section .note.GNU-stack, "", @progbits
    """)
    made = subprocess.run([CC, "-m32", "-nostdlib", "-static", "-o", tmp_path / "loop", tmp_path / "loop.S"], capture_output=True,
                          check=False)
    try:
        if made.returncode or subprocess.run([tmp_path / "loop"], check=False).returncode:
            raise OSError
    except OSError:
        pytest.skip("32-bit programs cannot be built or do not run here")
    recording = record(tmp_path / "loop")
    rows = query(recording, "SELECT emitted, dropped_failed FROM kymo.streams WHERE table_name = 'native.samples'")
    assert rows and rows[0]["dropped_failed"] >= 5, rows


def test_it_can_be_turned_off(build, record):
    recording = record(build(SPIN, "-O2"), words=["--no-native"])
    assert query(recording, "SELECT count(*) AS n FROM native.samples") == [{"n": 0}]


def test_a_refusal_is_one_sentence_and_the_program_runs(build, place, tmp_path):
    refuse = build("""
        #include <errno.h>
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stddef.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int argc, char **argv)
        {
            struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
            execv(argv[1], argv + 1);
            return 1;
        }
    """, name="refuse")
    program = build("int main(void) { return 7; }")
    done = subprocess.run([refuse, KYMO, "run", "-o", tmp_path / "run", "--", program], env=place, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 7, done.stderr
    assert done.stderr.count("no native stacks: perf_event_open is blocked") == 1, done.stderr
    assert "--cap-add PERFMON" in done.stderr
    told = query(tmp_path / "run", "SELECT new FROM kymo.config WHERE key = 'native'")
    assert told and told[0]["new"].startswith("no native stacks")


def test_attach_samples_threads_that_run_already(build, place, tmp_path):
    program = build("""
        #include <pthread.h>
        #include <stdio.h>
        static volatile unsigned long sink;
        __attribute__((noinline)) static void *other_thread(void *none)
        {
            for (;;)
                sink++;
            return none;
        }
        int main(void)
        {
            pthread_t t;
            pthread_create(&t, NULL, other_thread, NULL);
            puts("ready");
            fflush(stdout);
            pthread_join(t, NULL);
        }
    """, "-O1", "-g")
    with subprocess.Popen([program], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout.readline() == "ready\n"
            done = subprocess.run([KYMO, "attach", "-q", "--duration", "2", "-o", tmp_path / "run", str(running.pid)], env=place,
                                  capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr
        finally:
            running.kill()
    found = functions(tmp_path / "run")
    assert list(found)[0] == "other_thread", found
    assert complete_share(tmp_path / "run") >= 0.95


# ---- views


def test_flame_graphs_and_exports_have_native_stacks(build, record, tmp_path):
    recording = record(build(SPIN, "-O2", "-g"))

    def out(*words):
        done = subprocess.run([KYMO, *words], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert "heavy_inner" in out("flame", str(recording)) and "heavy_inner" in out("flame", "--native", str(recording))
    folded = out("export", "-f", "folded", "--native", "-o", "-", str(recording))
    assert re.search(r"main[^;]*;heavy_work[^;]*;heavy_inner[^;]* \d+\n", folded)
    scope = json.loads(out("export", "-f", "speedscope", "--native", "-o", "-", str(recording)))
    assert any(frame["name"].startswith("heavy_inner") for frame in scope["shared"]["frames"])
    chrome = out("export", "-f", "chrome", "-o", "-", str(recording))
    assert "heavy_inner" in chrome
    for name, words in (("p.perfetto-trace", ()), ("p.pb.gz", ("-f", "pprof", "--native")), ("p.svg", ("--native",))):
        file = tmp_path / name
        out("export", *words, "-o", str(file), str(recording))
        assert file.stat().st_size > 100
    assert "heavy_inner" in (tmp_path / "p.svg").read_text()
    out("report", "-o", str(tmp_path / "page.html"), str(recording))
    packed = tmp_path / "run.kymo"
    out("pack", str(recording), str(packed))
    assert list(functions(packed))[0] == "heavy_inner"
    assert "heavy_inner" in out("flame", str(packed))


# ---- compiled code

JIT = """
    #include <stdio.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <time.h>
    #include <unistd.h>
    int main(int argc, char **argv)
    {
        static const unsigned char loop[] = { 0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3 };
        unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char path[64];
        FILE *map;
        memcpy(code, loop, sizeof(loop));
        snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
        map = argc > 1 ? NULL : fopen(path, "w");
        if (argc > 1 && symlink(argv[1], path))
            return 1;
        if (map) {
            fprintf(map, "broken line\\n%lx %zx compiled_loop of a test\\n", (unsigned long)code, sizeof(loop));
            fclose(map);
        }
        while (clock() < CLOCKS_PER_SEC / 4)
            ((void (*)(unsigned long))(void *)code)(1000000);
        unlink(path);
        return 0;
    }
"""
machine = pytest.mark.skipif(os.uname().machine != "x86_64", reason="machine code of x86_64")


@machine
def test_compiled_code_has_the_names_of_its_perf_map(build, record):
    assert "compiled_loop of a test" in functions(record(build(JIT, "-O2")))


@machine
def test_a_perf_map_that_is_a_link_is_not_read(build, record, tmp_path):
    other = tmp_path / "other.map"
    other.write_text("0 ffffffffffff stolen_name\n")
    found = functions(record(build(JIT, "-O2"), str(other)))
    assert "stolen_name" not in found and "(compiled code)" in found, found


# ---- Python

PYTHON = """
    import hashlib, sys, time
    data = b"x" * 40_000_000
    def innermost():
        hashlib.sha256(data)
    def outermost():
        innermost()
    end = time.time() + 3
    while time.time() < end:
        outermost()
"""


def test_python_frames_are_where_the_interpreter_is(record, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(PYTHON))
    recording = record(sys.executable, script)
    rows = query(recording, """
        SELECT stack, sum(weight_ns) AS ns FROM native.samples
        WHERE python = 'merged' AND len(list_filter(stack, x -> x LIKE 'innermost (%')) > 0 GROUP BY 1 ORDER BY 2 DESC LIMIT 1""")
    assert rows, query(recording, "SELECT python, count(*) AS n FROM native.samples GROUP BY 1")
    names = [frame.split(" (")[0] for frame in rows[0]["stack"]]
    at = names.index("innermost")
    assert at >= 1 and names[at:at + 3] == ["innermost", "outermost", "<module>"]
    assert any("sha" in name.lower() or "EVP" in name for name in names[:at]), names
    assert not any("_PyEval_EvalFrameDefault" in name for name in names)


def test_the_merged_order_is_that_of_py_spy(place, tmp_path):
    spy = shutil.which("py-spy") or str(pathlib.Path(sys.executable).with_name("py-spy"))
    if not pathlib.Path(spy).exists():
        pytest.skip("py-spy is not installed")
    script, out = tmp_path / "program.py", tmp_path / "run"
    script.write_text(textwrap.dedent(PYTHON))
    with subprocess.Popen([KYMO, "run", "-q", "-o", out, "--", sys.executable, script], env=place) as running:
        time.sleep(1.2)
        children = pathlib.Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        target = next(pid for pid in children if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().count(b"program.py"))
        dumps = [subprocess.run([spy, "dump", "--native", "--pid", target], capture_output=True, text=True, timeout=30, check=False)
                 for _ in range(3)]
    theirs = None
    for dump in dumps:
        names = [m[1] for m in re.finditer(r"^ {4}(\S.*?) \(", dump.stdout, re.M)]
        if "innermost" in names and names.index("innermost") > 0:
            theirs = names
    if not theirs:
        pytest.skip(f"py-spy does not work here: {dumps[0].stderr or dumps[0].stdout}")
    wanted = [name for name in theirs if name in ("innermost", "outermost", "<module>")]
    rows = query(out, "SELECT DISTINCT stack FROM native.samples WHERE python = 'merged' "
                      "AND len(list_filter(stack, x -> x LIKE 'innermost (%')) > 0")
    assert rows
    for row in rows:
        ours = [frame.split(" (")[0] for frame in row["stack"]]
        assert [name for name in ours if name in ("innermost", "outermost", "<module>")] == wanted
        assert ours.index("innermost") > 0


def test_callers_that_alternate_are_not_mixed_up(record, tmp_path):
    """Both callers have the same function at the same place below them: nothing of a native stack tells them apart."""
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent("""
        import hashlib, time, zlib
        data = b"x" * 20000
        def work(function):
            function(data)
        def calls_crc():
            work(zlib.crc32)
        def calls_sha():
            work(hashlib.sha256)
        end = time.time() + 3
        while time.time() < end:
            calls_crc()
            calls_sha()
    """))
    recording = record(sys.executable, script)
    rows = query(recording, """
        SELECT stack[1:4] AS inner_frames, stack FROM native.samples
        WHERE python = 'merged' AND len(list_filter(stack, x -> x LIKE 'calls_%')) > 0""")
    wrong = [row for row in rows
             if any("crc" in f for f in row["inner_frames"][:2]) and any(f.startswith("calls_sha") for f in row["stack"])
             or any("sha" in f.lower() for f in row["inner_frames"][:2]) and any(f.startswith("calls_crc") for f in row["stack"])]
    assert len(wrong) <= 2, wrong[:2]
    assert query(recording, "SELECT count(*) AS n FROM native.samples WHERE python = 'apart'")[0]["n"] > 20


def test_another_profiler_of_the_program_works(tmp_path):
    """Build ids in our records of mappings would damage those of perf record, which aborts."""
    perf = shutil.which("perf")
    words = [perf, "record", "-q", "-e", "cpu-clock", "-o", tmp_path / "data", "--"]
    program = ["sh", "-c", "/bin/true; /bin/true"]
    if not perf or subprocess.run([*words, *program], capture_output=True, check=False).returncode:
        pytest.skip("perf record is not installed, or does not work here")
    done = subprocess.run([*words, KYMO, "run", "-q", "-o", tmp_path / "run", "--", *program], env=clean(os.environ),
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
