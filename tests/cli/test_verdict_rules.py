"""What verdicts say of recordings whose every sample is known: what a machine that is busy, or a thread that does not move, must not
change, and the kind of work that stacks show."""
import json

import pytest

from made import Made

S, MS = 1_000_000_000, 1_000_000
RUN_S = 4
MAIN = "<module> (/home/u/app.py:90)"
WORK = "work (/home/u/app.py:7)"


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    from conftest import Kymo
    kymo = Kymo(tmp_path_factory.mktemp("rules"))
    kymo.path = kymo.home / "template.kymo"
    assert kymo("pack", kymo.record("plain"), kymo.path).status == 0
    return kymo


class Rules(Made):
    """A run of four seconds with samples of its threads."""

    def __init__(self, template, path):
        super().__init__(template, path)
        for table in ("python.samples", "native.samples", "host.threads", "host.process", "host.cpu", "python.loop_stalls"):
            self.db.execute(f"DELETE FROM {table}")
        self.db.execute(f"UPDATE kymo.runs SET duration_ns = {RUN_S * S}, program = 'app.py', supervised = true, host = 'box'")
        self.db.execute("UPDATE kymo.processes SET host = 'box'")

    def add(self, table, **row):
        row = {"host": "box", "pid": self.pid, **row}
        self.db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))

    def stacks(self, count, stack, *, each_ms=10, table="python.samples", activity="running", place=WORK, tid=None, **more):
        if table == "python.samples":
            more = {"state": "R" if activity in ("running", "ready") else "S", "cause": "period", "gil": activity == "running", **more}
        else:
            more = {"complete": True, **more}
        row = {"host": "box", "pid": self.pid, "tid": tid or self.pid, "stack": stack, "place": place,
               "weight_ns": int(each_ms * MS), "activity": activity, **more}
        self.db.execute(f"INSERT INTO {table} (ts_ns, {', '.join(row)}) SELECT (i + 1) * {RUN_S * S} // {count + 1}, "
                        f"{', '.join('?' * len(row))} FROM range({count}) AS t(i)", list(row.values()))

    def use(self, *, cpu_s, delay_s=0, busy_pct=100, cores=2):
        """Of the process, its main thread and the machine, at the start, in the middle and at the end."""
        for part in (0, 0.5, 1):
            at = {"ts_ns": int(part * RUN_S * S), "cpu_ns": int(part * cpu_s * S), "run_delay_ns": int(part * delay_s * S)}
            self.add("host.process", **at, cpu_pct=100 * cpu_s / RUN_S, rss_bytes=1 << 20, children_cpu_ns=0, involuntary_switches=9)
            self.add("host.threads", **{**at, "run_delay_ns": int(part * min(delay_s, RUN_S) * S)}, tid=self.pid, thread="app",
                     state="running")
            for cpu in (None, *range(cores)):
                self.db.execute("INSERT INTO host.cpu (ts_ns, cpu, busy_pct, host) VALUES (?, ?, ?, 'box')",
                                [at["ts_ns"], cpu, busy_pct])


@pytest.fixture
def judge(template, tmp_path):
    """judge(rows -> …): the verdicts, by their names, in order."""
    def verdicts(fill):
        path = tmp_path / "made.kymo"
        path.unlink(missing_ok=True)
        with Rules(template.path, path) as rows:
            fill(rows)
        done = template("report", path, "-f", "json")
        assert done.status == 0, done.err
        said = json.loads(done.out)
        assert said["problems"] == []
        return {one["name"]: one for one in said["verdicts"]}
    return verdicts


# --- waits and cores -----------------------------------------------------------------------------------------------------

def test_a_thread_that_does_not_move_waits_with_its_function(judge):
    """Its samples are few, because nothing changes: here one of three seconds."""
    def fill(rows):
        rows.use(cpu_s=0.2, busy_pct=10)
        rows.stacks(20, [WORK, MAIN], place=WORK)
        rows.stacks(1, ["select (/usr/lib/python3.11/selectors.py:468)", "fetch (/home/u/app.py:30)"], each_ms=3000,
                    activity="socket", waits_for="10.0.0.1:80", place="fetch (/home/u/app.py:30)")
    waiting = judge(fill)["waiting"]
    assert waiting["sentence"] == "The program waits for a socket (10.0.0.1:80) for 75 % of the run."
    assert waiting["where"]["function"] == "fetch"


@pytest.mark.parametrize("threads, cpu_s, whose", [(4, 0.5, "other programs use the cores"), (8, 0.5, "other programs use the cores"),
                                                   (8, 7, "its own threads use the cores"), (4, 7, None)])
def test_threads_crowd_others_out_if_they_have_the_cores_and_are_many(judge, threads, cpu_s, whose):
    """On two cores, all of which are busy. Four threads compute as much there as two."""
    def fill(rows):
        rows.use(cpu_s=cpu_s, delay_s=threads * RUN_S - cpu_s)
        rows.stacks(50, [WORK, MAIN], activity="ready")
    said = judge(fill).get("crowded")
    assert whose in said["sentence"] if whose else not said, said


@pytest.mark.parametrize("activity, expected", [("running", True), ("ready", False)])
def test_the_time_without_a_core_is_no_part_of_a_function_between_modules(judge, activity, expected):
    """A few times the thread lost its core in a small function, for long."""
    def fill(rows):
        rows.use(cpu_s=2, delay_s=1)
        rows.loop(("forward", [40 * MS] * 100))
        rows.stacks(180, ["forward (/home/u/app.py:20)", MAIN], place="forward (/home/u/app.py:20)")
        rows.stacks(10, ["clip (/home/u/app.py:30)", MAIN], each_ms=5, place="clip (/home/u/app.py:30)")
        rows.stacks(10, ["clip (/home/u/app.py:31)", MAIN], each_ms=50, activity=activity, place="clip (/home/u/app.py:31)")
    assert ("between" in judge(fill)) == expected


@pytest.mark.parametrize("stalls, expected", [(2, False), (6, True)])
def test_an_event_loop_that_stalls_for_less_than_50_ms_in_all_is_no_finding(judge, stalls, expected):
    def fill(rows):
        rows.use(cpu_s=0.5)
        rows.db.execute(f"UPDATE kymo.runs SET duration_ns = {S // 2}")
        for i in range(stalls):
            rows.add("python.loop_stalls", ts_ns=i * 50 * MS, duration_ns=20 * MS, function="render", file="/home/u/app.py", line=4,
                     samples=2, ready=1, loop="asyncio", tid=rows.pid, thread="MainThread", starved_ns=0)
    assert ("event_loop" in judge(fill)) == expected


@pytest.mark.parametrize("gil_ms, expected", [(6, True), (0, False)])
def test_threads_that_wait_for_the_gil_and_then_for_a_core_wait_for_the_gil(judge, gil_ms, expected):
    """Without the first, they only wait for a core."""
    def fill(rows):
        rows.use(cpu_s=4, delay_s=5)
        for tid in (rows.pid + 1, rows.pid + 2, rows.pid + 3):
            rows.stacks(100, [WORK, MAIN], each_ms=13, activity="running", tid=tid, gil=True)
            if gil_ms:
                rows.stacks(100, [WORK, MAIN], each_ms=gil_ms, activity="GIL", tid=tid, gil=False)
            rows.stacks(100, [WORK, MAIN], each_ms=20, activity="ready", tid=tid, gil=False)
    said = judge(fill)
    assert ("gil" in said) == expected, said
    if expected:  # 0.6 s of each 3.9 s, and as much without a core
        assert said["gil"]["gain_pct"] == pytest.approx(30, abs=1)


# --- the kind of work ----------------------------------------------------------------------------------------------------

LIB = "/usr/lib/python3.11"
TORCH = ["torch::autograd::THPVariable_getitem(_object*, _object*) (libtorch_python.so)", WORK, MAIN]
KINDS = {  # kind: (table, stack down to the place, words or None, a word of the advice)
    "std::regex": ("native.samples", ["_int_malloc (libc.so.6)",
                                      "std::__detail::_Compiler<std::__cxx11::regex_traits<char> >::_M_atom() (app)",
                                      "std::__cxx11::basic_regex<char>::basic_regex(std::__cxx11::basic_string<char> const&) (app)",
                                      WORK, MAIN], "compiling regular expressions", "outside of the loop"),
    "fsync": ("native.samples", ["fsync (libc.so.6)", "os_fsync (libpython3.11.so.1.0)", WORK, MAIN], "flushing files to storage",
              "flush less often"),
    "np.append": ("python.samples", [f"append ({LIB}/site-packages/numpy/lib/function_base.py:5618)", WORK, MAIN],
                  "growing arrays", "make the array once"),
    "other numpy": ("python.samples", [f"linspace ({LIB}/site-packages/numpy/_core/function_base.py:20)", WORK, MAIN], "numpy", ""),
    "threads": ("python.samples", [f"Event.wait ({LIB}/threading.py:629)", f"Thread.start ({LIB}/threading.py:969)", WORK, MAIN],
                "starting threads", "ThreadPoolExecutor"),
    "std::thread": ("native.samples", ["__GI___clone3 (libc.so.6)", "pthread_create@@GLIBC_2.34 (libc.so.6)", WORK, MAIN],
                    "starting threads", "pool"),
    "small tensors": ("native.samples", ["c10::TensorImpl::_fw_grad(unsigned long, at::TensorBase const&) const (libc10.so)", *TORCH],
                      "small torch operations", "torch.compile"),
    "large tensors": ("native.samples", ["mkl_blas_avx2_sgemm_kernel_0 (libtorch_cpu.so)", "at::_ops::mm::call(at::Tensor const&) "
                                         "(libtorch_cpu.so)", *TORCH], None, "cheaper"),
    "loop of a kernel": ("native.samples", ["c10::function_ref<void (char**, long const*, long, long)>::callback_fn<float> "
                                            "(libtorch_cpu.so)", *TORCH], None, "cheaper"),
}


def work_of(rows, kind):
    table, stack, *_ = KINDS[kind]
    rows.use(cpu_s=3.9)
    if table == "native.samples":  # a Python program, too: its own stacks end at the call
        rows.stacks(300, [WORK, MAIN])
    rows.stacks(300, stack, table=table)


@pytest.mark.parametrize("kind", KINDS)
def test_the_kind_of_work_is_that_of_the_stacks_below_the_function(judge, kind):
    _, _, words, advice = KINDS[kind]
    function = judge(lambda rows: work_of(rows, kind))["function"]
    assert function["sentence"].endswith(f" of the run, mostly for {words}." if words else " of the run."), function
    assert advice in function["try"]


def test_what_torch_does_while_it_is_imported_is_not_the_work_of_a_function(judge):
    """Native stacks of an import have no place; a function that has nearly all other samples is not blamed for them."""
    def fill(rows):
        work_of(rows, "large tensors")
        rows.stacks(700, ["c10::Dispatcher::registerImpl() (libc10.so)", "THPModule_initExtension (libtorch_python.so)",
                          "PyImport_ImportModuleLevelObject (libpython3.11.so.1.0)"], table="native.samples", place=None)
    assert judge(fill)["function"]["sentence"].endswith(" of the run.")


def test_the_kind_that_explains_a_function_comes_before_a_smaller_cause(judge):
    """A fifth of it is garbage collection, nearly all of it is JSON."""
    def fill(rows):
        rows.use(cpu_s=3.9)
        rows.stacks(390, [f"scan ({LIB}/json/decoder.py:353)", WORK, MAIN])
        for i in range(40):
            rows.zone("gc (generation 2)", i * 90 * MS, 20 * MS, source="python")
        rows.db.execute("INSERT INTO trace.regions (name, source, count, total_ns, self_ns) VALUES "
                        f"('gc (generation 2)', 'python', 40, {0.8 * S}, {0.8 * S})")
    said = judge(fill)
    assert list(said)[:2] == ["function", "gc"]
    assert said["gc"]["where"]["function"] == said["function"]["where"]["function"] == "work"


@pytest.mark.parametrize("run_ms, expected", [(400, False), (600, True)])
def test_garbage_collections_of_a_run_below_half_a_second_are_no_finding(judge, run_ms, expected):
    """Those of imports; on a busy machine one of them may lose its core."""
    def fill(rows):
        rows.use(cpu_s=0.3)
        rows.db.execute(f"UPDATE kymo.runs SET duration_ns = {run_ms * MS}")
        rows.db.execute("INSERT INTO trace.regions (name, source, count, total_ns, self_ns) VALUES "
                        f"('gc (generation 2)', 'python', 3, {run_ms * MS // 5}, {run_ms * MS // 5})")
    assert ("gc" in judge(fill)) == expected
