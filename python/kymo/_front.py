"""`python -m kymo`: translates its command line to `kymo run --python` and executes that.

So the collector outlives the program, and the plain interpreter runs the program: its arguments, `__main__`, sys.path
and tracebacks are the real ones, not imitations.
"""
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in _query.py
if TYPE_CHECKING:
    from typing import NoReturn

USAGE = """\
usage: python -m {name} [OPTIONS] SCRIPT | -m MODULE | -c CODE  [ARGUMENTS]

Run a Python program and record its function calls.

  -p                record only inside a Profiler or the fixture kymo_profile
  -l                record lines, too; needs -p
  --c-calls         record functions written in C, too
  -o DIR            directory of the recording (./kymo-DATE-PID)
  -n NAME           ./kymo-NAME-DATE-PID; with -o: DIR/NAME
  -r                write the totals of regions to DIR.csv
  -t, --port N      start a live viewer for browsers on port N
  --skip N          record Python calls after the first N steps
  --take N          record Python calls for N steps
  --from NAME       record Python calls from this signpost
  --to NAME         record Python calls until this signpost
  -v                print the command that is executed
  -h, --help        show this help

Afterwards: kymo report; kymo query "FROM trace.regions". More: man kymo-run
"""

# The meaning of an option: words for `kymo run`, a word of --python, or None: ignored with a note.
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
    """A parsed command line: words for `kymo run`, words of --python, ignored options, the program."""

    def __init__(self) -> None:
        self.run: list[str] = []
        self.python: list[str] = []
        self.unused: list[str] = []
        self.program: list[str] = []


def wrong(name: str, sentence: str) -> NoReturn:
    sys.stderr.write(f"python -m {name}: {sentence}\n")
    sys.exit(2)


def read(name: str, words: list[str]) -> Words:
    """Parses the options before the program; the program and its arguments stay unchanged."""
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
        wrong(name, f"a program is missing: python -m {name} [OPTIONS] SCRIPT | -m MODULE | -c CODE [ARGUMENTS]")
    if "lines" in found.python and "partial" not in found.python:
        wrong(name, "-l needs -p: lines are recorded only where a Profiler is enabled")
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
        wrong(name, f"unknown option {word}; python -m {name} -h lists the options")


def _take_flag(found: Words, word: str) -> None:
    means = FLAGS[word]
    if means is None:
        found.unused.append(word)
    elif isinstance(means, str):
        found.python.append(means)
    else:
        found.run += means


def interpreter() -> list[str]:
    """This interpreter with its options, the words before `-m kymo`."""
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
        sys.stderr.write(f"python -m {name}: {option} is not supported and is ignored\n")
    try:
        words = command(found)
    except Exception as error:
        sys.exit(f"python -m {name}: {error}")
    if "verbose" in found.python:
        sys.stderr.write(f"kymo: {' '.join(words)}\n")
    try:
        os.execv(words[0], words)
    except OSError as error:
        sys.exit(f"python -m {name}: cannot start {words[0]}: {error.strerror}")
