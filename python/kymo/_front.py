"""`python -m kymo`: the words of its command line in those of `kymo run --python`, which takes its place.

So a supervisor outlives the program, and the program is run by the plain interpreter: its arguments, `__main__`,
sys.path and tracebacks are not imitated, they are the real ones.
"""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in _query.py
if TYPE_CHECKING:
    from typing import NoReturn

USAGE = """\
usage: python -m {name} [OPTIONS] SCRIPT | -m MODULE | -c CODE  [ARGUMENTS]

Runs a Python program as without it, and records every function call of it.

  -p                only what a Profiler or the fixture kymo_profile turns on
  -l                line by line; needs -p
  --c-calls         functions written in C too, under their own names
  -o DIR            where the recording goes (./kymo-DATE-PID)
  -n NAME           ./kymo-NAME-DATE-PID; with -o, the recording DIR/NAME
  -r                write the totals as CSV beside the recording
  -t, --port N      show it in the viewer on this port
  --skip N          record calls after the first N steps (of kymo, C or torch)
  --take N          and for N steps
  --from NAME       record calls from this signpost on
  --to NAME         and until that one
  -v                say what is run
  -h, --help        this text

Afterwards: kymo report; kymo query "FROM trace.regions". More: man kymo-run
"""

# What an option becomes: words for `kymo run`, {} its value; a name in Words; or None, a note.
FLAGS = {
    "-p": "partial", "-l": "lines", "--c-calls": "c-calls", "-v": "verbose",
    "-r": ["--report"], "--check-exit-code": [],
    "--no-device": None, "--no-op-info-cache": None, "--process-logs-only": None, "--profile-dispatch-cores": None,
    "--enable-sum-profiling": None, "--no-runtime-analysis": None, "--sync-host-device": None,
    "--device-trace-profiler": None, "--device-memory-profiler": None, "--dump-device-data-mid-run": None,
    "--disable-device-data-dump-to-files": None, "--disable-device-data-push-to-tracy": None,
    "--collect-noc-traces": None,
}
VALUES = {
    "-o": "--output", "--output-folder": "--output", "-n": "--name", "--name-append": "--name",
    "--skip": "--skip", "--take": "--take", "--from": "--from", "--to": "--to",
    "-t": "--serve=", "--port": "--serve=", "--op-support-count": None, "--child-functions": None, "-a": None,
    "--device-analysis-types": None, "--tracy-tools-folder": None, "--profiler-capture-perf-counters": None,
}


class Words:
    """A command line, taken apart: words for `kymo run`, what it is to do in Python, options without a meaning here."""

    def __init__(self) -> None:
        self.run: list[str] = []
        self.python: list[str] = []
        self.unused: list[str] = []
        self.program: list[str] = []


def wrong(name: str, sentence: str) -> NoReturn:
    sys.stderr.write(f"python -m {name}: {sentence}\n")
    sys.exit(2)


def read(name: str, words: list[str]) -> Words:
    """What stands before the program is ours; from its name on, nothing is touched."""
    found = Words()
    words = list(words)
    while words and words[0].startswith("-") and words[0] not in ("-", "-m", "-c", "--"):
        word = words.pop(0)
        if word in ("-h", "--help"):
            sys.stdout.write(USAGE.format(name=name))
            sys.exit(0)
        if word[:2] in ("-m", "-c") and word[1] != "-":  # -mpytest
            words.insert(0, word)
            break
        _take(name, found, word, words)
    found.program = words[1:] if words[:1] == ["--"] else words
    if not found.program or found.program in (["-m"], ["-c"]):
        wrong(name, f"which program? python -m {name} [OPTIONS] SCRIPT | -m MODULE | -c CODE [ARGUMENTS]")
    if "lines" in found.python and "partial" not in found.python:
        wrong(name, "-l needs -p: a whole program line by line is too much; -p records what a Profiler turns on")
    return found


def _take(name: str, found: Words, word: str, words: list[str]) -> None:
    option, equals, value = word.partition("=")
    if option in VALUES:
        if not equals and not words:
            wrong(name, f"{word} needs a value")
        value = value if equals else words.pop(0)
        if VALUES[option] is None:
            found.unused.append(f"{option} {value}")
        else:
            means = VALUES[option] or ""
            found.run += [means + value] if means.endswith("=") else [means, value]
    elif word in FLAGS:
        _take_flag(found, word)
    elif word[:2] in VALUES and word[1] != "-":  # -oDIR
        words.insert(0, word[2:])
        _take(name, found, word[:2], words)
    elif word[1] != "-" and len(word) > 2 and all(f"-{letter}" in {**FLAGS, **VALUES} for letter in word[1:]):  # -pl
        words[:0] = [f"-{letter}" for letter in word[1:]]
    else:
        wrong(name, f"no option is called {word}; python -m {name} -h lists them")


def _take_flag(found: Words, word: str) -> None:
    means = FLAGS[word]
    if means is None:
        found.unused.append(word)
    elif isinstance(means, str):
        found.python.append(means)
    else:
        found.run += means


def interpreter() -> list[str]:
    """This interpreter with the options it was given: what stands before our own `-m kymo`."""
    ours = len(sys.orig_argv) - len(sys.argv) + 1
    before = sys.orig_argv[1:ours]
    module = before.pop() if before else ""
    option = module if module.startswith("-") else before.pop()  # -mkymo; or -m, kymo; each with letters before the m
    letters = option[:option.index("m")]
    return [sys.executable, *before, *([letters] if letters != "-" else [])]


def command(found: Words) -> list[str]:
    from kymo._query import find_program

    python: list[str] = [word for word in ("partial", "lines", "c-calls") if word in found.python]
    python = python if "partial" in python else ["on", *python]
    return [find_program(), "run", f"--python={','.join(python)}", *found.run, "--", *interpreter(), *found.program]


def main(name: str) -> NoReturn:
    found = read(name, sys.argv[1:])
    for option in found.unused:
        sys.stderr.write(f"python -m {name}: {option} is for what is not here, and changes nothing\n")
    try:
        words = command(found)
    except Exception as error:
        sys.exit(f"python -m {name}: {error}")
    if "verbose" in found.python:
        sys.stderr.write(f"kymo: {' '.join(words)}\n")
    try:
        os.execv(words[0], words)
    except OSError as error:
        sys.exit(f"python -m {name}: {words[0]} could not be started: {error.strerror}")
