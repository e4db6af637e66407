"""docs/faults.txt and docs/reliability.md: read, check, write. Used by tools/gen-reliability and tools/check-faults.

A result is when a test last passed, or why it did not. The page keeps results that are no longer in build/ until the test
has run again.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE, PAGE = ROOT / "docs/faults.txt", ROOT / "docs/reliability.md"
FAULTS = range(1, 40)
TEST = re.compile(r"((?:tests|fuzz)/[\w./-]+?)(?:: (\w+))?")
NEVER, FAILS = "not run yet", "fails"
WORDS = ("note", "not here", "not yet")


class Fault:
    def __init__(self, number, claim):
        self.number, self.claim, self.tests, self.words = number, claim, [], []

    @property
    def told(self):
        """Whether it gives a reason for missing tests."""
        return any(kind != "note" for kind, _ in self.words)


class Section:
    def __init__(self, title):
        self.title, self.faults, self.text = title, [], []


def read_source(text):
    """The sections; raises ValueError with the number of an invalid line."""
    sections: list[Section] = []
    for number, line in enumerate(text.splitlines(), 1):
        word, _, words = line.strip().partition(": ")
        begin = re.fullmatch(r"(\d+) (.+)", line)
        fault = sections[-1].faults[-1] if sections and sections[-1].faults else None
        if line.startswith("## "):
            sections.append(Section(line[3:]))
        elif line.startswith("#") or not line.strip():
            continue
        elif begin and sections:
            sections[-1].faults.append(Fault(int(begin[1]), begin[2]))
        elif fault and line.startswith("\t") and word in WORDS:
            fault.words.append((word, words))
        elif fault and line.startswith("\t") and TEST.fullmatch(line.strip()):
            fault.tests.append(line.strip())
        elif sections and not fault:
            sections[-1].text.append(line)
        else:
            raise ValueError(f"line {number} is not a fault, test, note or heading: {line.strip()}")
    return sections


def why_missing(test):
    match = TEST.fullmatch(test)
    assert match, f"no test is named by {test}"
    file, name = match.groups()
    path = ROOT / file
    if not path.is_file():
        return "no such file"
    if not name:
        return None
    text = path.read_text(errors="replace")
    if path.suffix == ".py":
        return None if re.search(rf"^ *def {name}\(", text, re.M) else "no such function in this file"
    if not re.search(rf"^static void {name}\(void \*\*state\)", text, re.M):
        return "no such test in this file"
    if len(re.findall(rf"\b{name}\b", text)) < 2:
        return "not in the file's table of tests, so it never runs"
    return None


def wrong_in(sections):
    """Errors of the source: missing or repeated faults, missing tests."""
    faults = [fault for section in sections for fault in section.faults]
    numbers = [fault.number for fault in faults]
    wrong = [f"fault {n} is missing" for n in FAULTS if n not in numbers]
    wrong += [f"fault {n} occurs {numbers.count(n)} times" for n in sorted(set(numbers)) if numbers.count(n) > 1]
    for fault in faults:
        if not fault.tests and not fault.told:
            wrong.append(f"fault {fault.number} has neither a test nor a reason (not here: …, not yet: …)")
        missing = [(test, why_missing(test)) for test in fault.tests]
        wrong += [f"fault {fault.number}: {test}: {why}" for test, why in missing if why]
    return wrong


# --- the page ------------------------------------------------------------------------------------------------------

HEAD = """# Reliability: the faults that kymo survives

The requirements for a program, disk, clock or reader that misbehaves, the tests for each, and when each test last passed, with its
commit (`+`: with uncommitted changes). `make test` runs all of them on one machine with two cores. Tests that mount a small file
system or change the user need root and are skipped without it. Fuzz targets run for seconds there, for an hour in `make soak`, and in
the background with `tools/fuzz-hours`: [so far](#fuzzing-so-far).

`tools/gen-reliability` makes this page of [faults.txt](faults.txt), [fuzzing.txt](fuzzing.txt) and the last runs of `tests/run`; do not
edit it.
"""
FUZZING = "## Fuzzing so far"
PASSED = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d) UTC.*")
TITLES = {"note": "", "not here": "Cannot be tested here: ", "not yet": "Not yet: "}


def when_of(fault, results):
    """The earliest of the times when its tests last passed, or the number of tests that have not passed."""
    said = [results.get(test, NEVER) for test in fault.tests]
    if not said:
        return "no test"
    times = [match[1] for match in map(PASSED.fullmatch, said) if match]
    failing = [one for one in said if one.endswith(FAILS)]
    if failing:
        return f"**{len(failing)} of {len(said)} fail**"
    return min(times) if len(times) == len(said) else f"{len(times)} of {len(said)}"


def overview(faults, results):
    tests = [test for fault in faults for test in fault.tests]
    passed = [test for test in tests if PASSED.fullmatch(results.get(test, NEVER))]
    failing = [test for test in tests if results.get(test, NEVER).endswith(FAILS)]
    counts = f"{len(set(tests))} tests; {len(set(passed))} have passed, {len(set(failing))} fail now"
    out = [f"**{len(faults)} faults, {counts}.**", "", "| fault | requirement | all passed, UTC |", "|---:|---|---|"]
    return out + [f"| [{f.number}](#fault-{f.number}) | {f.claim} | {when_of(f, results)} |" for f in faults] + [""]


def chapter(fault, results):
    out = [f"### Fault {fault.number}", "", f"{fault.claim}.", ""]
    if fault.tests:
        out += ["| test | last passed |", "|---|---|"]
        out += [f"| `{test}` | {results.get(test, NEVER)} |" for test in fault.tests] + [""]
    for kind, words in fault.words:
        out += [f"{TITLES[kind]}{words[0].upper() + words[1:] if kind == 'note' else words}.", ""]
    return out


def page(sections, results, fuzzing):
    """fuzzing: the lines of its chapter."""
    faults = [fault for section in sections for fault in section.faults]
    out = [HEAD, *overview(faults, results)]
    for section in sections:
        out += [f"## {section.title}", "", *section.text] + ([""] if section.text else [])
        for fault in section.faults:
            out += chapter(fault, results)
    out += [FUZZING, "", *fuzzing]
    return "\n".join(out).rstrip() + "\n"


def words_of(result, before):
    """A row of build/results.json as text; before is the current text of the page."""
    passed = result.get("passed")
    since = f"{passed['when']} UTC, `{passed['commit']}`" if passed else before.split(";")[0] if PASSED.fullmatch(before) else ""
    if result["last"] == "passed":
        return since
    why = result["why"].replace(f"{ROOT}/", "").replace("|", "/").replace("\n", " ")
    now = FAILS if result["last"] == "failed" else f"not run here: {why}"
    return "; ".join(filter(None, [since, now]))


def results_of(text):
    """The results on a page, so that a test that has not run since keeps its line."""
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", text, re.M))


def fuzzing_of(text):
    """The chapter on a page: like the times of tests, the figures are not checked."""
    return text.partition(FUZZING + "\n\n")[2].rstrip().splitlines()
