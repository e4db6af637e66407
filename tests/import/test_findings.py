"""The verdicts of imported traces: each with a planted trace and a healthy twin, and with the place of the cause."""
import json
import os
import pathlib
import subprocess

import pytest

from made_steps import Made

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = ROOT / "build" / "kymo"
TRACES = pathlib.Path(os.environ.get("KYMO_TRACES", ROOT.parent / "shared" / "traces"))
STEPS = 10


def training(planted, waits_in=None, waits=True, kernel_us=400, steps=STEPS):
    """Steps in train() of train.py: 20 kernels of 400 us, launched within 2 ms, and a wait for the last. planted(made, at) adds what
    comes before the launches, and returns how long it takes; waits_in(made, start, end) is around the wait."""
    made, at = Made(), 0
    for number in range(steps):
        begin = at + (planted(made, at) or 0)
        free = begin
        for i in range(20):
            call = begin + 20 + i * 90
            made.host("aten::linear", call - 10, call + 40)
            start = max(call + 10, free)
            made.kernel("ampere_sgemm_128x64_tn", call, start, kernel_us)
            free = start + kernel_us
        if waits:
            made.sync(begin + 2000, free + 10)
        if waits_in:
            waits_in(made, begin + 1990, free + 20)
        end = free + 30 if waits else begin + 2000
        made.step(number, at, end)
        at = end
    made.python("train.py(12): train", 0, at)
    return made


def ahead():
    """The host never waits, and is steps ahead of the device."""
    made, free = Made(), 0
    made.python("train.py(12): train", 0, STEPS * 2000)
    for number in range(STEPS):
        made.step(number, number * 2000, number * 2000 + 2000)
        for i in range(20):
            call = number * 2000 + 20 + i * 90
            free = max(call + 10, free)
            made.kernel("ampere_sgemm_128x64_tn", call, free, 400)
            free += 400
    return made


def healthy(made, at):
    """Nothing."""


def load_data(made, at):
    made.python("data.py(40): read_batch", at + 10, at + 4000)
    made.host("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at, at + 4000)
    return 4000


def host_work(made, at):
    made.python("augment.py(7): mix", at, at + 9000)
    made.host("aten::unique", at + 10, at + 8990)
    return 9000


def zeros(made, at):
    made.host("aten::zeros", at, at + 3000)
    return 3000


def item(made, start, end):
    made.python("metrics.py(21): log_loss", start, end)
    made.host("aten::item", start + 2, end - 2)


def pageable(made, at):
    made.python("feed.py(9): to_device", at, at + 2100)
    made.copy("Memcpy HtoD (Pageable -> Device)", at + 20, at + 30, 2000, call_us=2020, nbytes=4 << 20)
    return 2100


def pinned(made, at):
    made.copy("Memcpy HtoD (Pinned -> Device)", at + 20, at + 30, 200, call_us=5, nbytes=4 << 20, stream=9)


def exposed(made, at):
    """3 ms of nothing but all_reduce in each step."""
    made.python("ddp.py(5): reduce_all", at, at + 3400)
    made.all_reduce(at + 20, at + 100, 3000)
    made.sync(at + 150, at + 3150)
    return 3400


def hidden(made, at):
    made.all_reduce(at + 1000, at + 1500, 3000)


def tiny(kernel_us, gap_us):
    """2,000 kernels, each launched when the one before has ended."""
    made = Made()
    made.step(1, 0, 2000 * (kernel_us + gap_us))
    made.python("optim.py(3): update", 0, 2000 * (kernel_us + gap_us))
    for i in range(2000):
        at = i * (kernel_us + gap_us)
        made.kernel("vectorized_elementwise_kernel", at, at + gap_us, kernel_us, call_us=gap_us - 2)
    return made


def late_rank(delay, rank, ranks):
    """Ranks that meet in 20 collectives; the last rank loads for `delay` longer before each."""
    made, at = Made(rank, ranks), 0
    for number in range(20):
        made.step(number, at, at + 1000 + delay)
        work = 50 + (delay if rank == ranks - 1 else 0)
        made.python("shard.py(8): pad_batch", at, at + work)
        made.kernel("gemm", at + work, at + work + 10, 100)
        begin = at + work + 120
        made.all_reduce(begin, begin + 10, 1000 + delay - work - 200)
        made.sync(begin + 20, at + 950 + delay)
        at += 1000 + delay
    return [made]


PLANTED = {
    "data": (lambda: [training(load_data)], "device_data", "read_batch", "data.py", 40,
             "The device waits for data: GPU 0 was idle for "),
    "host": (lambda: [training(host_work, waits=False)], "device_idle", "mix", "augment.py", 7, "The device waits for the host: GPU 0"),
    "item": (lambda: [training(zeros, item)], "device_sync", "log_loss", "metrics.py", 21,
             "The host waits for the device too often: after cudaStreamSynchronize GPU 0 was idle"),
    "pageable": (lambda: [training(pageable)], "device_copies", "to_device", "feed.py", 9, "Copies from pageable memory take "),
    "exposed": (lambda: [training(exposed)], "device_comm", "reduce_all", "ddp.py", 5,
                "Communication is exposed: GPU 0 communicated for "),
    "launches": (lambda: [tiny(2, 10)], "device_launch", "update", "optim.py", 3, "The program is bound by launches: "),
    "tiny": (lambda: [tiny(3, 7)], "device_tiny", "update", "optim.py", 3, "Device operations are tiny: "),
    "waited for": (lambda: [training(healthy)], "device_bound", "train", "train.py", 12,
                   "The device is the bottleneck: stream 7 was busy"),
    "kernels": (lambda: [ahead()], "device_kernels", "train", "train.py", 12,
                "The device is the bottleneck: its kernels are "),
    "late rank": (lambda: [one for rank in range(4) for one in late_rank(700, rank, 4)], "rank", "pad_batch", "shard.py", 8,
                  "Rank 3 is late: the other ranks wait for it for "),
}
HEALTHY = {
    "training": (lambda: [training(healthy)], {"device_data", "device_idle", "device_sync", "device_copies", "device_comm",
                                               "device_launch", "device_tiny", "device_unused", "rank", "ranks"}),
    "pinned": (lambda: [training(pinned)], {"device_copies"}),
    "hidden": (lambda: [training(hidden)], {"device_comm"}),
    "long kernels": (lambda: [tiny(100, 10)], {"device_launch", "device_tiny", "device_idle"}),
    "ranks": (lambda: [one for rank in range(4) for one in late_rank(0, rank, 4)], {"rank", "ranks"}),
    "ahead": (lambda: [ahead()], {"device_idle", "device_sync", "device_data", "device_tiny", "device_launch"}),
}


def verdicts(tmp_path, traces):
    files = [str(trace.write(tmp_path / f"rank{trace.rank}.json")) for trace in traces]
    subprocess.run([KYMO, "import", "-q", "-o", tmp_path / "run", *files], check=True, timeout=120)
    done = subprocess.run([KYMO, "report", "-f", "json", tmp_path / "run"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["verdicts"]


@pytest.mark.parametrize("what", PLANTED)
def test_what_was_planted_is_found_first_with_its_place(tmp_path, what):
    make, name, function, file, line, sentence = PLANTED[what]
    found = verdicts(tmp_path, make())
    told = {one["name"]: one for one in found}
    assert name in told, [one["sentence"] for one in found]
    assert told[name]["sentence"].startswith(sentence)
    where = told[name]["where"]
    assert (where["function"], where["file"], where["line"]) == (function, file, line), where
    assert where["share"] > 0.4
    same = ["device_tiny", "device_launch"]  # both are true
    assert found[0]["name"] == name or {name, found[0]["name"]} == set(same), [one["sentence"] for one in found]


@pytest.mark.parametrize("what", HEALTHY)
def test_a_healthy_twin_has_none_of_them(tmp_path, what):
    make, names = HEALTHY[what]
    assert not {one["name"] for one in verdicts(tmp_path, make())} & names


def test_the_report_has_the_critical_path(tmp_path):
    trace = training(load_data).write(tmp_path / "trace.json")
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([KYMO, "report", trace], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    section = done.stdout[done.stdout.index("Critical path\n"):].split("\n\n")[0].split("\n")
    assert section[1].startswith("  121 ms: kernel 66 %, host 33 %"), section
    assert section[2].split() == ["time", "%", "path", "would", "win", "kind", "name"]
    assert max(len(line) for line in section) <= 80
    assert any("ampere_sgemm_128x64_tn" in line for line in section)


def test_a_report_of_traces_advises_on_the_tool_that_wrote_them(tmp_path):
    """Its first line has no clock of kymo, queues are told apart by rank, and nobody is sent to kymo run."""
    for rank in range(2):
        made = Made(rank, 2)
        made.host("aten::linear", 5, 30)
        made.kernel("gemm", 10, 40, 200, stream=7)
        made.kernel("other", 20, 60, 100, stream=24)
        made.write(tmp_path / f"rank{rank}.json")
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([KYMO, "import", "-q", "-o", tmp_path / "run", tmp_path / "rank0.json", tmp_path / "rank1.json"], check=True,
                   timeout=120, env=env)
    done = subprocess.run([KYMO, "report", tmp_path / "run"], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    first = done.stdout.split("\n")[0].replace("µ", "u")
    assert first == "rank0.json  imported  235 us  2 processes of 2 ranks"
    assert {line[:14].strip() for line in done.stdout.split("\n") if ", rank " in line} == {
        f"s{stream}, rank {rank}" for stream in (7, 24) for rank in range(2)}
    assert "Steps: none in the trace; torch.profiler writes them if the loop calls its step()" in done.stdout
    assert "Torch modules: none in the trace; torch.profiler writes them with with_stack=True" in done.stdout
    assert "Memory: not in the trace; torch.profiler writes it with profile_memory=True" in done.stdout
    assert "kymo run" not in done.stdout and "kymo_step" not in done.stdout


def report_of(tmp_path, *traces):
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    files = [trace.write(tmp_path / f"rank{trace.rank}.json") for trace in traces]
    subprocess.run([KYMO, "import", "-q", "-o", tmp_path / "run", *files], check=True, timeout=120, env=env)
    done = subprocess.run([KYMO, "report", tmp_path / "run"], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace("µ", "u")


def test_paths_of_ranks_that_nothing_joins_do_not_add_up(tmp_path):
    """Rank 1 takes 2 ms, rank 0 takes 1 ms: no path is longer than the run."""
    traces = []
    for rank in range(2):
        made = Made(rank, 128)
        made.step(1, 0, 1000 * (rank + 1))
        made.host("aten::load", 0, 1000 * (rank + 1) - 100)
        made.kernel("gemm", 10, 40, 200)
        traces.append(made)
    told = report_of(tmp_path, *traces)
    section = told[told.index("Critical path\n"):].split("\n\n")[0].split("\n")
    assert section[1] == "  2.00 ms of rank 1, the longest of 2 paths that no collective joins:"
    assert section[2].startswith("  host ") and max(len(line) for line in section) <= 80
    assert "aten::load is 95 % of the critical path (1.90 ms of 2.00 ms)" in " ".join(told.split())


def test_names_of_kernels_and_streams_are_short_and_whole(tmp_path):
    """nsys writes the types of numbers in templates; the arguments are what comes after the first other parenthesis."""
    made = Made()
    made.kernel("void at::native::reduce<(int)128, (bool)1, Op<float, (unsigned int)4>>(T1 *, int)", 10, 40, 900)
    made.kernel("other", 20, 60, 100, stream=24)
    made.sync(30, 1000)
    for event in made.events:  # a second device
        if event["tid"] == 24:
            event["pid"] = event["args"]["device"] = 1
    told = report_of(tmp_path, made)
    assert "at::native::reduce<128, 1, Op<float, 4>>" in told
    assert {line.split("  ")[1] for line in told.split("\n") if ", GPU " in line} >= {"s7, GPU 0", "s24, GPU 1"}


@pytest.mark.skipif(not (TRACES / "ref").is_dir(), reason=f"no traces of real GPUs in {TRACES}; set KYMO_TRACES")
def test_late_ranks_and_slow_loading_of_real_traces_are_said_first(tmp_path):
    def first(*files):
        out = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        subprocess.run([KYMO, "import", "-q", "-o", out, *files], check=True, timeout=120)
        done = subprocess.run([KYMO, "report", "-f", "json", out], capture_output=True, text=True, timeout=120)
        return json.loads(done.stdout)["verdicts"][0]["sentence"]
    assert first(*(TRACES / "astra").glob("*.json.gz")).startswith("Ranks 0 and 6 are late: ")
    assert first(*(TRACES / "kineto/resnet50_num_workers_0").glob("*.json.gz")).startswith("The device waits for data: GPU 0 was idle ")
    mi300 = first(TRACES / "tracelens/traces/mi300/resnet_act_checkpoint.json.gz")
    assert mi300.startswith("Communication is exposed: GPU 2 of rank 0")
    assert first(*(TRACES / "hta/ns_resolution_trace").glob("*.json.gz")).startswith("The device is the bottleneck: its kernels are ")


def test_two_traces_are_compared_by_steps_regions_and_kernels(tmp_path):
    """B loads data for 4 ms a step, and its kernels take 20 % longer."""
    files = [training(healthy).write(tmp_path / "a.json"), training(load_data, kernel_us=480).write(tmp_path / "b.json")]
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([KYMO, "compare", *files], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    assert "B is slower: a step takes 1.695 times as long" in done.stdout
    rows = {line.split()[0]: line.split() for line in done.stdout.split("\n") if line.strip()}
    assert rows["read_batch"][-2:] == ["new", "slower"]
    kernel = next(row for name, row in rows.items() if name.startswith("ampere_sg"))
    assert kernel[1:5] == ["400", "µs", "480", "µs"] and "1.200" in kernel and kernel[-1] == "slower", kernel
    assert "ProfilerStep#" not in done.stdout


def test_traces_of_one_step_are_compared_by_their_kernels(tmp_path):
    made = [training(healthy, steps=1), training(healthy, steps=1, kernel_us=440)]
    files = [trace.write(tmp_path / f"{i}.json") for i, trace in enumerate(made)]
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([KYMO, "compare", *files], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    assert any(line.strip().startswith("ampere_sg") and "1.100" in line for line in done.stdout.split("\n")), done.stdout
