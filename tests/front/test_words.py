"""`python -m kymo OPTIONS PROGRAM`: what becomes of its words, literally."""
import json
import re
import sys

import pytest
from conftest import KYMO
from pythons import plainly

# Stands in for the kymo program, and says what it was called with.
FAKE = f"#!{sys.executable} -I\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"


@pytest.fixture
def front(tmp_path, home):
    """front(words): (status, words of kymo run up to --, words after it, stderr)"""
    fake = tmp_path / "kymo"
    fake.write_text(FAKE)
    fake.chmod(0o755)

    def go(*words, module="kymo", env=None):
        status, out, err = plainly([sys.executable, "-m", module, *words], {**home, "KYMO_BIN": str(fake), **(env or {})},
                                   tmp_path)
        said = json.loads(out) if status == 0 and out.startswith("[") else [out, "--"]
        at = said.index("--")
        return status, said[:at], said[at + 1:], err
    return go


WORDS = [
    (["s.py", "-p", "--x"], ["run", "--python=on"], ["s.py", "-p", "--x"]),
    (["-m", "pytest", "-l"], ["run", "--python=on"], ["-m", "pytest", "-l"]),
    (["-mpytest", "-l"], ["run", "--python=on"], ["-mpytest", "-l"]),
    (["-c", "pass", "x"], ["run", "--python=on"], ["-c", "pass", "x"]),
    (["-p", "s.py"], ["run", "--python=partial"], ["s.py"]),
    (["-p", "-l", "s.py"], ["run", "--python=partial,lines"], ["s.py"]),
    (["-pl", "-m", "x"], ["run", "--python=partial,lines"], ["-m", "x"]),
    (["--c-calls", "s.py"], ["run", "--python=on,c-calls"], ["s.py"]),
    (["-p", "--c-calls", "s.py"], ["run", "--python=partial,c-calls"], ["s.py"]),
    (["-o", "a dir", "-n", "name", "-r", "s.py"], ["run", "--python=on", "--output", "a dir", "--name", "name", "--report"],
     ["s.py"]),
    (["-oDIR", "--name-append=n", "s.py"], ["run", "--python=on", "--output", "DIR", "--name", "n"], ["s.py"]),
    (["--port", "9000", "s.py"], ["run", "--python=on", "--serve=9000"], ["s.py"]),
    (["--skip", "3", "--take=2", "s.py"], ["run", "--python=on", "--skip", "3", "--take", "2"], ["s.py"]),
    (["--from", "a b", "--to", "c", "s.py"], ["run", "--python=on", "--from", "a b", "--to", "c"], ["s.py"]),
    (["--check-exit-code", "--", "s.py", "--"], ["run", "--python=on"], ["s.py", "--"]),
]


@pytest.mark.parametrize("words, run, program", WORDS)
def test_the_words_of_kymo_run(front, words, run, program):
    assert front(*words) == (0, run, [sys.executable, *program], "")


def test_a_word_that_has_no_meaning_here_is_one_note(front):
    assert front("--no-device", "--op-support-count", "5", "-a", "x", "s.py", module="tracy") == (
        0, ["run", "--python=on"], [sys.executable, "s.py"],
        "python -m tracy: --no-device is not supported and is ignored\n"
        "python -m tracy: --op-support-count 5 is not supported and is ignored\n"
        "python -m tracy: -a x is not supported and is ignored\n")


WRONG = [
    ([], "a program is missing: python -m kymo [OPTIONS] SCRIPT | -m MODULE | -c CODE [ARGUMENTS]"),
    (["-p"], "a program is missing: python -m kymo [OPTIONS] SCRIPT | -m MODULE | -c CODE [ARGUMENTS]"),
    (["-m"], "a program is missing: python -m kymo [OPTIONS] SCRIPT | -m MODULE | -c CODE [ARGUMENTS]"),
    (["-l", "s.py"], "-l needs -p: lines are recorded only where a Profiler is enabled"),
    (["--frobnicate", "s.py"], "unknown option --frobnicate; python -m kymo -h lists the options"),
    (["-z", "s.py"], "unknown option -z; python -m kymo -h lists the options"),
    (["-o"], "-o needs a value"),
]


@pytest.mark.parametrize("words, sentence", WRONG)
def test_wrong_use_is_one_line_and_status_2(front, words, sentence):
    status, _, _, err = front(*words)
    assert (status, err) == (2, f"python -m kymo: {sentence}\n")


def test_help_lists_the_options(front):
    status, (out,), _, err = front("--help")
    assert (status, err) == (0, "")
    assert out.startswith("usage: python -m kymo [OPTIONS] SCRIPT | -m MODULE | -c CODE  [ARGUMENTS]\n")
    assert re.findall(r"^  (-\S+)", out, re.M) == ["-p", "-l", "--c-calls", "-o", "-n", "-r", "-t,", "--skip", "--take", "--from",
                                                   "--to", "-v", "-h,"]


def test_v_says_what_is_run(front, tmp_path):
    assert front("-v", "s.py")[3] == f"kymo: {tmp_path}/kymo run --python=on -- {sys.executable} s.py\n"


def test_without_the_program_it_says_so(front):
    assert front("s.py", env={"KYMO_BIN": "/nowhere/kymo"})[::3] == (
        1, "python -m kymo: cannot start /nowhere/kymo: No such file or directory\n")


RUN_WRONG = [
    (["--python=lines"], "--python=lines needs partial: lines are recorded only where a Profiler is enabled"),
    (["--python=wat"], '--python=wat: unknown word "wat"; use on, off, partial, lines or c-calls'),
    (["--skip", "1"], "--skip, --take, --from and --to need --python"),
    (["--python", "--skip", "x"], "--skip needs a number of steps, not x"),
    (["--python", "--take", "0"], "--take needs a number of steps, not 0"),
    (["--python", "--skip", "1", "--to", "x"],
     "use either --skip and --take (steps) or --from and --to (signposts), not both"),
    (["--python=partial", "--skip", "1"],
     "--skip, --take, --from and --to do not work with --python=partial, where a Profiler selects the calls"),
    (["--name", "a/b"], '--name "a/b" is invalid: a name must not be empty, contain / or begin with a dot'),
]


@pytest.mark.parametrize("words, sentence", RUN_WRONG)
def test_wrong_use_of_kymo_run(home, tmp_path, words, sentence):
    assert plainly([KYMO, "run", *words, "--", "true"], home, tmp_path) == (2, "", f"kymo run: {sentence}\n")


def test_a_name_is_a_part_of_the_recordings(home, tmp_path):
    assert plainly([KYMO, "run", "-q", "-n", "first", "--", "true"], home, tmp_path)[0] == 0
    assert re.fullmatch(r"kymo-first-\d{8}-\d{6}-\d+", next(tmp_path.glob("kymo-*")).name)
    for name in ("a", "b"):
        assert plainly([KYMO, "run", "-q", "-o", "runs", "-n", name, "--", "true"], home, tmp_path)[0] == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["a", "b"]
