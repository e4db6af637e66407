"""The first finding names the kind of work as well as the function: what its samples do below it, or the cause of its time."""
import importlib.util
import os
import re

import pytest

from test_detectors import chosen, holds, python
from test_where import found, is_named

# kind: (verdict, word of works.py, function, sentence, advice)
MOSTLY = r"The costliest function is {} \(works\.py:\d+\): .* of the run, mostly for "
WORKS = {
    "regular expressions": ("function", "regex", "parse_line", MOSTLY + r"regular expressions\.", "nested repeats"),
    "JSON": ("function", "settings", "get_setting", MOSTLY + r"JSON\.", "once and keep it"),
    "searches": ("function", "duplicates", "remove_duplicates", MOSTLY + r"searches in a list\.", "a set or a dict"),
    "copies": ("function", "snapshots", "keep_snapshot", MOSTLY + r"copies of objects\.", "copy less"),
    "logging": ("function", "messages", "price_item", MOSTLY + r"logging\.", "log less"),
    "growing arrays": ("function", "samples", "add_sample", MOSTLY + r"growing arrays\.", "make the array once"),
    "joining strings": ("function", "pages", "render_page", MOSTLY + r"joining strings\.", "in a list"),
    "small tensors": ("function", "tensors", "advance", MOSTLY + r"small torch operations\.", "torch.compile"),
    "pickling": ("pickle", "batches", "send_batches", r"Sending data between processes is costly: .* of the program's CPU time .*",
                 "send less"),
    "blocked loop": ("event_loop", "logins", "compute|hash_password", r"The event loop is blocked: .*", "in a thread"),
    "GIL": ("gil", "threads", "extract_features", r"Python threads wait for each other: .* waits for the GIL .*", "processes"),
}
NEEDS_NAMES = {"searches", "joining strings", "regular expressions"}  # of C functions of the interpreter, which some are stripped of
NEEDS_CORES = {"GIL", "blocked loop"}  # threads that wait for a core do not wait for the GIL, nor does a loop


NEEDS = {"growing arrays": "numpy", "small tensors": "torch"}
for _kind, _package in NEEDS.items():
    if importlib.util.find_spec(_package) is None:
        del WORKS[_kind]


@pytest.fixture(scope="module", autouse=True)
def begun(runs, request):
    kinds = chosen(request.session, "kind")
    for kind, (_, word, *_) in WORKS.items():
        if kind in kinds:
            runs.begin(python("works.py", word))
            runs.begin(python("works.py", word, "few"))


def is_first(run, verdict, function, sentence):
    """The load of the machine (crowded) and a garbage collection may be findings, too, but behind it."""
    first = run.verdicts[0]
    return first["name"] == verdict and is_named(run, verdict, function, "works.py") and \
        bool(re.fullmatch(sentence.format(function), first["sentence"]))


@pytest.mark.parametrize("kind", WORKS)
def test_the_kind_of_work_comes_first_with_its_function(runs, kind):
    verdict, word, function, sentence, advice = WORKS[kind]
    good, run = holds(runs, python("works.py", word), lambda run: is_first(run, verdict, function, sentence))
    if not good and kind in NEEDS_NAMES and is_named(run, verdict, function, "works.py"):
        pytest.skip("the interpreter has no names of its C functions")
    if not good and kind in NEEDS_CORES and os.getloadavg()[0] > 3 * (os.cpu_count() or 1):
        pytest.skip("the machine is too busy: threads wait for a core instead")
    assert good, [(one["name"], one["sentence"], one["where"]) for one in run.verdicts]
    assert advice in run.verdicts[0]["try"]


@pytest.mark.parametrize("kind", WORKS)
def test_a_healthy_twin_has_no_such_kind(runs, kind):
    verdict, word, function, sentence, _ = WORKS[kind]
    good, run = holds(runs, python("works.py", word, "few"), lambda run: not found(run, verdict) or
                      (verdict == "function" and "mostly for" not in run.sentence(verdict)))
    assert good, [(one["name"], one["sentence"]) for one in run.verdicts]


# Work whose time is a wait or not, by the machine: (word of works.py, function, verdict: sentence, advice)
EITHER = {
    "flushing": ("records", "append_record", {"io": r"The program waits for storage: .*",
                                              "function": r".*mostly for flushing files to storage\."}, "flush less often"),
    "starting threads": ("tasks", "run_task", {"waiting": r"The program waits for a thread to start for .*",
                                               "function": r".*mostly for starting threads\."}, "ThreadPoolExecutor"),
}


@pytest.fixture(scope="module", autouse=True)
def begun_too(runs, request):
    for work in chosen(request.session, "work"):
        runs.begin(python("works.py", EITHER[work][0]))
        runs.begin(python("works.py", EITHER[work][0], "few"))


def tells(run, work):
    _, function, sentences, _ = EITHER[work]
    first = run.verdicts[0]
    said = sentences.get(first["name"], "-")
    return is_named(run, first["name"], function, "works.py") and bool(re.fullmatch(said, first["sentence"]))


@pytest.mark.parametrize("work", EITHER)
def test_the_work_or_the_wait_for_it_comes_first(runs, work):
    good, run = holds(runs, python("works.py", EITHER[work][0]), lambda run: tells(run, work))
    assert good, [(one["name"], one["sentence"], one["where"]) for one in run.verdicts]
    assert EITHER[work][3] in run.verdicts[0]["try"]


@pytest.mark.parametrize("work", EITHER)
def test_a_little_of_it_is_not_told(runs, work):
    good, run = holds(runs, python("works.py", EITHER[work][0], "few"), lambda run: not tells(run, work))
    assert good, run.verdicts[0]
