"""What the first screen tells of programs that are short, leak quickly, wait for their workers, run code without a file, train in
ranks or share a lock in C: the function is named. Their healthy twins are silent."""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

import pytest

from conftest import KYMO, NATIVE, Judged
from test_detectors import CORES, holds, python
from test_where import found, is_named

HAS_TORCH = importlib.util.find_spec("torch") is not None
# cause: (verdict, program, healthy twin, function, file, sentence)
CAUSES = {
    "leak of a short run": ("growth", python("findings.py", "leak"), python("findings.py", "leak", "few"), "remember_batch",
                            "findings.py", r"Memory grows throughout the run: from .*B after start-up to .*B at the end\."),
    "pool": ("waiting", python("findings.py", "pool"), python("findings.py", "pool", "few"), "download_page", "findings.py",
             r"The program waits for its worker processes: a worker sleeps for .* of the run\."),
    "spawned pool": ("waiting", python("findings.py", "spawned"), python("findings.py", "spawned", "few"), "download_page",
                     "findings.py", r"The program waits for its worker processes: a worker sleeps for .* of the run\."),
    "executor": ("function", python("findings.py", "executor"), python("findings.py", "executor", "few"), "compute", "findings.py",
                 r"The costliest function is compute \(findings\.py:\d+\): .* of the run\."),
    "generated code": ("function", python("findings.py", "generated"), python("findings.py", "generated", "few"), "build_points",
                       "findings.py", r"The costliest function is build_points \(findings\.py:\d+\): .* of the run\."),
    "crowd": ("crowded", (NATIVE, "crowd", str(4 * CORES)), (NATIVE, "asleep"), "work|burn", "",
              r"Thread detect_native was ready to run but had no core for .* of the run: .* use the cores.*\."),
    "faults": ("swap", (NATIVE, "faults", "FOLDER/file"), (NATIVE, "read", "FOLDER/file"), None, None,
               r"Memory is read back from storage: .*"),
    "C++ mutex": ("lock", (NATIVE, "contended"), (NATIVE, "own"), "count_word|tokenize_shard", "",
                  r"Threads wait for locks: .* in total, .* of the run, mostly in (count_word|tokenize_shard)\."),
    "outside of zones": ("coverage", (NATIVE, "unmarked"), (NATIVE, "large"), "prepare_tables", "",
                         r"Zones explain little of this run: they cover .* of .*\."),
}
if HAS_TORCH:
    CAUSES["late rank under DDP"] = ("rank", python("findings.py", "ddp"), python("findings.py", "ddp", "few"), "load_shard",
                                     "findings.py", r"Rank 1 is late: the other ranks wait for it for .* of the time \(.*\)\.")
SKIPS = {"faults": "this file system keeps what it is told to drop", "crowd": "the kernel does not measure run delays"}


@pytest.fixture(scope="module", autouse=True)
def begun(runs):
    for _, has, has_not, *_ in CAUSES.values():
        runs.begin(has)
        runs.begin(has_not)


@pytest.mark.parametrize("cause", CAUSES)
def test_the_function_is_named(runs, cause):
    verdict, words, _, function, file, said = CAUSES[cause]
    good, run = holds(runs, words, lambda run: is_named(run, verdict, function, file) if file
                      else found(run, verdict) and (not function or re.match(function, found(run, verdict)["where"]["function"])))
    if not good and cause in SKIPS and not found(run, verdict):
        pytest.skip(SKIPS[cause])
    assert good, [(one["name"], one["sentence"], one["where"]) for one in run.verdicts]
    assert re.fullmatch(said, run.sentence(verdict)), run.sentence(verdict)
    if cause == "late rank under DDP":  # the wait in backward is not told a second time, and not as a lock
        assert "lock" not in run.names() and not (run.sentence("waiting") or "").startswith("The program waits for other ranks")


@pytest.mark.parametrize("cause", CAUSES)
def test_a_healthy_twin_has_no_such_finding(runs, cause):
    good, run = holds(runs, CAUSES[cause][2], lambda run: CAUSES[cause][0] not in run.names())
    assert good, [(one["name"], one["sentence"]) for one in run.verdicts]


def test_a_fixed_rate_that_cannot_tell_names_no_wrong_function(runs):
    """A batch takes 8 ms, of which memory grows in one: samples that are 10 ms apart do not separate the two functions."""
    one = found(Judged(runs, CAUSES["leak of a short run"][1], KYMO_SAMPLE_RATE="0.01"), "growth")
    assert not one or not one["where"] or one["where"]["function"] == "remember_batch", one


def first_screen(*command, **more):
    """What kymo run prints, at the rates that it chooses."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("KYMO") or k == "KYMO_DUCKDB"}
    with tempfile.TemporaryDirectory(prefix="kymo-detect-") as folder:
        os.mkdir(f"{folder}/live", 0o700)
        done = subprocess.run([KYMO, "run", "-o", f"{folder}/rec", "--", *map(str, command)], capture_output=True, text=True,
                              timeout=120, stdin=subprocess.DEVNULL,
                              env={**env, "KYMO_DIR": f"{folder}/live", "XDG_STATE_HOME": folder, "LC_ALL": "C.UTF-8", **more})
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_program_of_150_ms_has_an_answer():
    said = first_screen(*python("findings.py", "short"))
    assert re.search(r"^  where     (compute|parse_lines)  findings\.py:\d+  ", said, re.M), said
    assert len(said.splitlines()) <= 24 and max(map(len, said.splitlines()[1:])) <= 80, said


def test_a_shorter_one_has_one_line_with_the_function():
    """Of some milliseconds: a sample in own code is there, if not in each of the runs."""
    text = "def build():\n    return sum(i * i for i in range(300_000))\nbuild()\n"
    for _ in range(5):
        said = first_screen(sys.executable, "-c", text)
        if re.search(r"(Too short to judge: .*mostly in|The costliest function is) build \(<string>:2\)", " ".join(said.split())):
            return
    pytest.fail(said)


def test_what_counts_as_own_code_can_be_set(tmp_path):
    package = tmp_path / "lib/python3.11/site-packages/shared"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def grind():\n    return sum(i * i for i in range(2_000_000))\n")
    (tmp_path / "app.py").write_text(f"import sys\nsys.path.insert(0, {str(package.parent)!r})\nimport shared\n"
                                     "def main():\n    for _ in range(4):\n        shared.grind()\nmain()\n")
    assert re.search(r"^  where     main  app\.py:6 ", first_screen(sys.executable, tmp_path / "app.py"), re.M)
    named = first_screen(sys.executable, tmp_path / "app.py", KYMO_OWN_CODE=str(package))
    assert re.search(r"^  where     grind  shared/__init__\.py:2 ", named, re.M), named
