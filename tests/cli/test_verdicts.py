"""What a report says first: how the program ended, that it was too short, what was lost of the evidence, and where the
numbers are from."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import ROOT
from made import Made


def report(kymo, path="rec"):
    done = kymo("report", path, "-f", "json")
    assert done.status == 0, done.err
    return json.loads(done.out)


def run(kymo, code, *words, status=0, env=None):
    program = kymo.cwd / "program.py"
    program.write_text(code)
    done = kymo("run", "-o", "rec", *words, "--", sys.executable, program, env={"KYMO_QUIET": "0", **(env or {})})
    assert done.status == status, done.err
    return done


def test_a_crash_comes_first_and_what_took_the_time_second(kymo, python):
    code = ("import kymo, os, time\nwith kymo.region('outer'):\n    time.sleep(0.3)\n    with kymo.region('inner'):\n"
            "        os.kill(os.getpid(), 11)\n")
    program = kymo.cwd / "program.py"
    program.write_text(code)
    done = kymo("run", "-o", "rec", "--", python, program, env={"KYMO_QUIET": "0"})
    assert done.status == -11
    assert re.search(r"^  The program was killed by SIGSEGV after \d", done.err, re.M)
    assert "It ended inside outer for" in " ".join(done.err.split())
    first = report(kymo)["verdicts"][0]
    assert first["name"] == "ended" and first["evidence"].endswith(" was in outer > inner")
    assert first["sql"] == "FROM trace.open_zones" and "faulthandler" in first["try"]
    out = kymo("report", "rec").out
    assert out.splitlines()[2].startswith("  The program was killed by SIGSEGV")
    # What was open when it died counts for its thread: at least the sleep, most of the run.
    busy = out.split("\nThreads\n")[1].splitlines()[1].split()
    assert float(busy[0]) >= 300 and busy[1] == "ms" or busy[1] == "s"


def test_threads_that_are_not_shown_are_told_with_the_query_that_shows_them(kymo, python):
    code = ("import kymo, threading\ndef work():\n    with kymo.region('work'):\n        together.wait()\n"
            "together = threading.Barrier(12)\nthreads = [threading.Thread(target=work) for _ in range(12)]\n"
            "[one.start() for one in threads]; [one.join() for one in threads]\n")
    (kymo.cwd / "program.py").write_text(code)
    assert kymo("run", "-o", "rec", "--", python, "program.py", env={"KYMO_GC": "off"}).status == 0
    section = kymo("report", "rec").out.split("\nThreads\n")[1].split("\n\n")[0].splitlines()
    assert len(section) == 12 and section[-1] == "  2 more: kymo query 'FROM kymo.threads'"
    named = kymo("query", "-f", "csv", "rec", "SELECT count(*) FROM kymo.threads WHERE tid IN (SELECT tid FROM trace.zones)")
    assert named.out.split()[1] == "12"


def test_of_a_message_of_many_lines_the_first_is_told_with_its_place(kymo, python):
    (kymo.cwd / "program.py").write_text("raise AssertionError('one (1)\\n + where this\\n is more')\n")
    done = kymo("run", "-o", "rec", "--", python, "program.py", env={"KYMO_QUIET": "0"})
    assert "The program failed: AssertionError: one (1) … (program.py:1), exit status 1 after" in " ".join(done.err.split())


@pytest.mark.parametrize("words", [[], ["--python"]])
def test_an_exception_comes_first_and_no_word_on_imports(kymo, python, words):
    (kymo.cwd / "program.py").write_text("import json\ndef fail():\n    raise ValueError('no')\nfail()\n")
    done = kymo("run", "-o", "rec", *words, "--", python, "program.py", env={"KYMO_QUIET": "0"})
    assert done.status == 1 and "Traceback" in done.err
    text = " ".join(done.err.split())
    assert "The program failed: ValueError: no (program.py:3), exit status 1 after" in text
    assert "mport" not in text.split("The program failed")[1]
    verdicts = report(kymo)["verdicts"]
    assert verdicts[0]["name"] == "ended" and "import" not in [one["name"] for one in verdicts]


@pytest.mark.parametrize("code, status", [("import sys; sys.exit(3)", 3), ("import os; os._exit(3)", 3)])
def test_a_status_without_an_exception_is_said_alone(kymo, code, status):
    run(kymo, code, status=status)
    assert re.match(r"The program failed with exit status 3 after ", report(kymo)["verdicts"][0]["sentence"])


def test_a_program_that_was_asked_to_end_has_not_failed(kymo):
    run(kymo, "import os, time\ntime.sleep(0.1)\nos.kill(os.getpid(), 15)\n", status=-15)
    assert "ended" not in [one["name"] for one in report(kymo)["verdicts"]]


def test_a_tiny_script_is_too_short_to_judge(kymo):
    said = []
    for _ in range(8):  # one that nothing else on the machine has held up
        done = run(kymo, "import argparse, textwrap\nprint(1)\n", "--python", "--force")
        if "ran no Python" in done.err:
            pytest.skip(f"kymo has no extension for {sys.executable}")
        verdicts = report(kymo)["verdicts"]
        said.append([one["sentence"] for one in verdicts])
        if len(verdicts) == 1 and re.fullmatch(r"Too short to judge: the program ran for .*\.", said[-1][0]):
            break
    else:
        pytest.fail(f"not one of them says that it was too short: {said}")
    assert "regions" not in verdicts[0]["evidence"]


STEPS = """
import kymo, time
for _ in range(5000):
    kymo.step()
    with kymo.phase("data"):
        time.sleep(0.0001)
kymo.step_end()
"""


def test_what_was_lost_of_the_evidence_is_said(kymo, python):
    (kymo.cwd / "steps.py").write_text(STEPS)
    done = kymo("run", "-o", "rec", "--keep", "flight", "--", python, "steps.py", env={"KYMO_RING_ROWS": "1000"})
    assert done.status == 0, done.err
    sql = "SELECT sum(emitted)::INT AS emitted, sum(kept)::INT AS kept FROM kymo.streams WHERE table_name = 'trace.steps'"
    rows = json.loads(kymo("query", "-f", "json", "rec", sql).out)[0]
    assert rows["emitted"] == 5000 and rows["kept"] < 3000
    first = report(kymo)["verdicts"][0]
    assert first["name"] == "data"
    assert first["sentence"].endswith(f" Based on {rows['kept']:,} of 5,000 rows of trace.steps; the others were overwritten.")


def test_the_numbers_name_their_query_and_it_runs(shared):
    out = shared("report", shared.path).out
    query, *_ = re.findall(r'^  numbers   kymo query "(.*?)"$', re.sub(r"\n {12}", " ", out), re.M)
    assert query == "SELECT step, data_ns, duration_ns FROM trace.steps ORDER BY data_ns DESC"
    done = shared("query", shared.path, query)
    assert done.status == 0 and "40 rows" in done.err + done.out


def test_quantiles_that_are_not_kept_say_why(kymo, python):
    code = ("import kymo, time\nfor i in range(300):\n    with kymo.region(f'r{i}'):\n        time.sleep(i // 299)\n"
            "for i in range(15000):\n    with kymo.region('r0'): pass\n")  # more than flight keeps: rows are lost
    (kymo.cwd / "many.py").write_text(code)
    assert kymo("run", "--keep", "flight", "-o", "rec", "--", python, "many.py").status == 0
    table = kymo("report", "rec").out.split("\nRegions\n")[1].split("\n\n")[0]
    assert table.splitlines()[1].split()[3:] == ["r299", "python", "1", "-", "-"]
    assert "p50 and p99 are - where they are not recorded: a thread keeps the distribution of its first 256 regions" in \
        " ".join(table.split())


MODEL = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 8)))
for _ in range(3):
    model(torch.randn(4, 8)).sum().backward()
"""


def test_modules_that_are_numbered_are_shown_with_their_class(kymo, python):
    pytest.importorskip("torch", reason="torch is not installed: make setup")
    (kymo.cwd / "model.py").write_text(MODEL)
    assert kymo("run", "-o", "rec", "--", python, "model.py").status == 0
    out = kymo("report", "rec").out
    for section in ("Regions", "Torch modules"):
        table = out.split(f"\n{section}\n")[1].split("\n\n")[0]
        for name in ("0 (Linear)", "1 (Sequential)", "1.0 (ReLU)", "1.1 (Linear)", "Sequential"):
            assert re.search(rf" {re.escape(name)} ", table), table


def module_verdict(kymo, first, unit):
    """What is said of net, of whose parts b takes four times as long as the others, and the first call of a by so much longer."""
    template = kymo.home / "template.kymo"
    if not template.exists():
        assert kymo("pack", kymo.record("plain"), template).status == 0
    with Made(template, kymo.home / "made.kymo") as rows:
        rows.module("Net", "forward", [6 * unit + first] + [6 * unit] * 59, own=[0] * 60, model="Net")
        for name, times in (("a", [unit + first] + [unit] * 59), ("b", [4 * unit] * 60), ("c", [unit] * 60)):
            rows.module(f"net.{name}", "forward", times, model="Net")
    verdicts = report(kymo, kymo.home / "made.kymo")["verdicts"]
    return [(one["sentence"], one["evidence"]) for one in verdicts if one["name"] == "module"]


def test_a_first_call_does_not_make_a_module_the_costliest(kymo):
    ((said, why),) = module_verdict(kymo, first=1000e9, unit=1e9)
    assert said == "The costliest module is net.b: 67 % of the model's time (236 s of 354 s)."
    assert why == "60 calls, 4.00 s at the median in forward; first calls (1,006 s) are excluded"


def test_nothing_is_said_of_the_modules_of_a_model_that_hardly_runs(kymo):
    assert module_verdict(kymo, first=0, unit=1e9) and not module_verdict(kymo, first=0, unit=1)


def transformer(kymo):
    """GPT-2 in small: transformer has its blocks in a list, transformer.h, which is never called."""
    template = kymo.home / "template.kymo"
    assert kymo("pack", kymo.record("plain"), template).status == 0
    with Made(template, kymo.home / "made.kymo") as rows:
        rows.module("GPT", "forward", [100e9] * 60, own=[4e9] * 60, model="GPT")
        rows.module("transformer", "forward", [92e9] * 60, own=[2e9] * 60, model="GPT")
        rows.module("transformer.drop", "forward", [2e9] * 60, model="GPT")
        for block in ("2", "10"):
            rows.module(f"transformer.h.{block}", "forward", [44e9] * 60, own=[1e9] * 60, model="GPT")
            rows.module(f"transformer.h.{block}.attn", "forward", [13e9] * 60, model="GPT")
            rows.module(f"transformer.h.{block}.mlp", "forward", [30e9] * 60, model="GPT")
        rows.module("head", "forward", [4e9] * 60, model="GPT")
    return kymo.home / "made.kymo"


def test_a_module_around_a_list_of_modules_is_not_the_costliest(kymo):
    (said,) = [one["sentence"] for one in report(kymo, transformer(kymo))["verdicts"] if one["name"] == "module"]
    assert re.match(r"The costliest module is transformer\.h\.(2|10)\.mlp: 30 % of the model's time", said), said


def nested(kymo, made):
    """The modules of the page, each with its depth."""
    assert kymo("report", made, "page.html", "--force").status == 0
    block = re.search(r'id="kymo-data">(.*?)</script>', (kymo.cwd / "page.html").read_text(), re.S)[1]
    return [(row["module"], row["depth"]) for row in json.loads(block)["modules"]]


def test_modules_of_a_list_are_nested_below_the_module_that_has_the_list(kymo):
    assert nested(kymo, transformer(kymo)) == [
        ("GPT", 0), ("head", 1), ("transformer", 1), ("transformer.drop", 2),
        ("transformer.h.2", 2), ("transformer.h.2.attn", 3), ("transformer.h.2.mlp", 3),
        ("transformer.h.10", 2), ("transformer.h.10.attn", 3), ("transformer.h.10.mlp", 3)]


def test_modules_of_a_model_that_is_never_called_are_roots(kymo):
    template = kymo.home / "template.kymo"
    assert kymo("pack", kymo.record("plain"), template).status == 0
    with Made(template, kymo.home / "made.kymo") as rows:
        rows.module("enc", "forward", [9e9] * 20, own=[1e9] * 20, model="Lit")
        rows.module("enc.0", "forward", [8e9] * 20, model="Lit")
        rows.module("head", "forward", [3e9] * 20, model="Lit")
    assert nested(kymo, kymo.home / "made.kymo") == [("enc", 0), ("enc.0", 1), ("head", 0)]
    (module,) = [one for one in report(kymo, kymo.home / "made.kymo")["verdicts"] if one["name"] == "module"]
    assert module["sentence"].startswith("The costliest module is enc.0: 67 % of the model's time")


def test_every_query_that_a_report_names_runs(shared):
    page = (ROOT / "docs/verdicts.md").read_text()
    queries = re.findall(r"\| `(.*)` \|$", page, re.M)
    assert len(queries) >= 13
    for query in queries:
        done = shared("query", shared.path, query)
        assert done.status == 0, f"{query}\n{done.err}"


def test_a_leak_of_gigabytes_is_found(kymo):
    """Bytes times nanoseconds exceed 64 bits."""
    subprocess.run([ROOT / "build/tests/progs/made_run", kymo.cwd / "rec", "growth-large"], check=True)
    growth = next(verdict for verdict in report(kymo)["verdicts"] if verdict["name"] == "growth")
    assert growth["sentence"].startswith("Memory grows throughout the run: from 3.20 GB after start-up to 18.2 GB")


GREEDY = """
import time
def hoard():
    kept = []
    for _ in range(100):
        kept.append(b"x" * 10_000_000)
        time.sleep(0.02)
hoard()
"""


@pytest.fixture
def small_group():
    """A control group with a limit of 200 MB, of either version; the file to write a pid to."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = pathlib.Path(root) / f"kymo-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / limit).exists():
            (group / limit).write_text("200000000")
            for swap in ("memory.swap.max",):
                if (group / swap).exists():
                    (group / swap).write_text("0")
            yield group / "cgroup.procs"
            group.rmdir()
            return
        group.rmdir()
    pytest.skip("this user may not make a control group with a memory limit")


@pytest.mark.parametrize("options", [(), ("--memory",)])
def test_death_by_the_out_of_memory_killer_of_a_group_is_recognised(kymo, small_group, tmp_path, options):
    (tmp_path / "greedy.py").write_text(GREEDY)
    command = f"echo $$ > {small_group} && exec python3 {tmp_path}/greedy.py"
    done = kymo("run", *options, "-o", "run", "--", "sh", "-c", command,
                env={"KYMO_QUIET": "", "KYMO_SYSTEM_RATE": "0.05", "KYMO_SAMPLE_RATE": "0.02"})
    report = " ".join(kymo("report", "run").out.split())
    assert done.status == -9 and "ran out of memory and was killed" in report and "its limit of 200 MB" in report, report
    if options:
        assert "ran out of memory and was killed" in " ".join(done.err.split())
        assert re.search(r"most of it, \d+ MB, was allocated in greedy\.py:6\.", report), report


HANGS = """
import os, signal, sys, threading, time
a, b = threading.Lock(), threading.Lock()
def first():
    with a:
        time.sleep(0.3)
        with b: pass
def second():
    with b:
        time.sleep(0.3)
        with a: pass
def wait_forever():
    threading.Event().wait()
def compute():
    while True: sum(range(1000))
threading.Timer(5, os.kill, (os.getpid(), signal.SIGKILL)).start()
if sys.argv[1] == "deadlock":
    threads = [threading.Thread(target=f, name=f.__name__) for f in (first, second)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
else:
    {"waits": wait_forever, "computes": compute}[sys.argv[1]]()
"""


@pytest.mark.parametrize("how, said", [
    ("deadlock", r'no progress for \S+ s before it was ended by SIGKILL: deadlock: thread \d+ "(first|second)" waits for thread .*'
                 r"first is in first \(hangs\.py:7\); second is in second \(hangs\.py:11\)"),
    ("waits", r"no progress for \S+ s before it was ended by SIGKILL: MainThread waits .*, in wait_forever \(hangs\.py:13\)"),
    ("computes", None)])
def test_what_a_hung_program_waited_for_outlives_its_death(kymo, tmp_path, how, said):
    (tmp_path / "hangs.py").write_text(HANGS)
    done = kymo("run", "-q", "-o", "run", "--", "python3", tmp_path / "hangs.py", how, env={"KYMO_SYSTEM_RATE": "0.5"})
    assert done.status == -9, done.err
    first = report(kymo, "run")["verdicts"][0]
    assert first["name"] == "ended"
    if said:
        assert re.search(said, first["sentence"]), first["sentence"]
    else:
        assert "no progress" not in first["sentence"]


SHARE = re.compile(r"([\d,.]+) % of the run")


@pytest.mark.parametrize("region", ["work", "queue lock", "gc collect"])
def test_six_threads_in_a_region_are_at_most_all_of_the_run(kymo, python, region):
    # Their times add up to about 500 % of the run: time of threads, of which the run has one part only.
    code = (f"import kymo, threading, time\ndef work():\n    with kymo.region({region!r}):\n        time.sleep(0.6)\n"
            "threads = [threading.Thread(target=work) for _ in range(6)]\n"
            "[one.start() for one in threads]; [one.join() for one in threads]\n")
    (kymo.cwd / "program.py").write_text(code)
    done = kymo("run", "-o", "rec", "--", python, "program.py", env={"KYMO_QUIET": "0", "KYMO_GC": "off"})
    assert done.status == 0
    got = json.loads(kymo("query", "-f", "json", "rec", "SELECT self_ns, duration_ns FROM trace.regions, kymo.runs").out)
    assert got[0]["self_ns"] > 1.5 * got[0]["duration_ns"]
    texts = [done.err, kymo("report", "rec").out, *(json.dumps(one) for one in report(kymo)["verdicts"])]
    shares = [float(share.replace(",", "")) for text in texts for share in SHARE.findall(text)]
    assert shares and max(shares) <= 100
