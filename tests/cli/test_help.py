"""Help, versions and wrong use."""
import contextlib
import re

import pytest
from conftest import KYMO, PROGS, ROOT
from probe_tools import program, until

COMMANDS = ["run", "attach", "ls", "config", "query", "backtrace", "report", "compare", "import", "export", "flame", "top",
            "snapshot", "trigger", "lake", "pack", "rm", "serve", "mcp", "doctor", "completion", "help", "version"]


@pytest.mark.parametrize("arguments", [["help"], ["--help"], ["-h"]])
def test_help_lists_every_command(kymo, arguments):
    result = kymo(*arguments)
    assert result.status == 0 and result.err == ""
    for command in COMMANDS:
        assert f"  kymo {command}" in result.out


def test_without_words_kymo_prints_what_runs_and_what_to_type(kymo):
    result = kymo()
    assert (result.status, result.err) == (0, "")
    assert result.out == ("No recorded program is running.\nThere are no recordings.\n\nType:\n"
                          "  kymo run -- python train.py    record a program\n  kymo help                      all commands\n")
    path = kymo.record()
    result = kymo()
    assert result.out.startswith("No recorded program is running.\nNewest recording: cli_fixture, started ")
    assert f"\n  {path}\n" in result.out and "  kymo report  " in result.out


def test_without_words_kymo_lists_at_most_five_running_programs_in_20_lines(kymo):
    pids = []
    with contextlib.ExitStack() as stack:
        for _ in range(6):
            command = [KYMO, "run", "-q", "--", PROGS / "cli_fixture", "open"]
            run = stack.enter_context(program(command, cwd=kymo.cwd, env=kymo.env))
            pids.append(until(lambda run=run: run.first_line))
        result = kymo()
    assert result.out.startswith("Running now:\n") and "\n  and 1 more: kymo ls\n" in result.out
    assert sum(f"  {pid} " in result.out for pid in pids) == 5
    assert len(result.out.splitlines()) <= 20 and "  kymo backtrace --why PID  " in result.out
    assert [line for line in result.out.splitlines() if len(line) > 80 and str(kymo.cwd) not in line] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_usage_options_and_an_example(kymo, command):
    result = kymo("help", command)
    assert result.status == 0 and result.err == ""
    assert result.out.startswith(f"usage: kymo {command}")
    assert "\nOptions:\n" in result.out
    assert f"\nExamples:\n  kymo {command}" in result.out
    assert kymo(command, "--help").out == result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_keeps_80_columns(kymo, command):
    for line in kymo("help", command).out.splitlines():
        assert len(line) <= 80, line


# --- one language: the same option has the same name, letter and value everywhere, and in the manual ------------------

OPTION = re.compile(r"(?:-(\w), )?--([a-z]+(?:-[a-z]+)*)(\[=\S+\])?(?: ([^\s,-][^\s,]*))?")
# What the same word may differ in, and why.
MAY_DIFFER = {"output": "a recording is a directory, an answer a file", "format": "each has its own",
              "all": "-a is no run of kymo compare"}
LETTERS_OF_TWO = {"n": {"name", "limit"}}


def options_of(kymo, command):
    """By name: letter and value, as --help says."""
    text = kymo("help", command).out.split("\nOptions:\n")[1].split("\n\n")[0]
    lines = re.sub(r"\|\n +", "|", text).splitlines()  # a long list of values goes on in the next line
    found = [OPTION.match(line.strip()) for line in lines]
    return {match[2]: (match[1], match[3] or match[4] or "") for match in found if match}


def plain(roff):
    return re.sub(r"\\f[A-Z]|^\.[BI] ", "", roff, flags=re.M).replace("\\-", "-")


def chapter(page, title):
    return plain(page.split(f".SH {title}\n")[1].split("\n.SH")[0])


def test_an_option_is_the_same_in_every_command(kymo):
    seen, letters = {}, {}
    for command in COMMANDS:
        for name, how in options_of(kymo, command).items():
            seen.setdefault(name, {})[command] = how
            letters.setdefault(how[0], set()).add(name)
    assert {name: by for name, by in seen.items() if len(set(by.values())) > 1 and name not in MAY_DIFFER} == {}
    assert {letter: names for letter, names in letters.items() if letter and len(names) > 1} == LETTERS_OF_TWO
    assert seen["output"]["pack"] == seen["output"]["report"] == ("o", "FILE")
    assert seen["output"]["run"] == seen["output"]["attach"] == ("o", "DIR")


@pytest.mark.parametrize("command", COMMANDS)
def test_what_writes_a_file_does_not_replace_one_unasked(kymo, command):
    options = options_of(kymo, command)
    assert ("force" in options) == ("output" in options)


@pytest.mark.parametrize("command", COMMANDS)
def test_manual_and_help_agree(kymo, command):
    page, text = (ROOT / "man" / f"kymo-{command}.1").read_text(), kymo("help", command).out
    heads = re.findall(r"^\.TP\n(.*)", chapter(page, "OPTIONS"), re.M)
    assert {m[2]: (m[1], m[3] or m[4] or "") for head in heads for m in OPTION.finditer(head)} == options_of(kymo, command)
    usage = re.findall(r"^(?:usage:|   or:) (.*)$", text, re.M)
    assert [line for line in usage if line not in chapter(page, "SYNOPSIS").splitlines()] == []
    summary = text.split("\n\n")[1].rstrip(".")
    assert chapter(page, "NAME").lower() == f"kymo-{command} - {summary}".lower()
    assert page.startswith(".TH")
    for title in ("EXIT STATUS", "EXAMPLES", "SEE ALSO"):
        assert f"\n.SH {title}\n" in page
    assert f"\nkymo {command}" in chapter(page, "EXAMPLES")


def test_the_manual_of_kymo_names_every_command():
    page = (ROOT / "man/kymo.1").read_text()
    assert page.startswith(".TH") and ".SH EXAMPLES" in page
    heads = re.findall(r"^\.TP\n(.*)", chapter(page, "COMMANDS"), re.M)
    assert sorted(word for head in heads for word in head.split(", ")) == sorted(COMMANDS)


@pytest.mark.parametrize("arguments", [["version"], ["--version"], ["-V"]])
def test_version(kymo, arguments):
    header = (ROOT / "include/kymo/kymo.h").read_text()
    version = re.search(r'#define KYMO_VERSION "(.*)"', header).group(1)
    result = kymo(*arguments)
    assert (result.status, result.out, result.err) == (0, f"kymo {version}\n", "")


WRONG = [
    (["run", "--xla=0", "--", "true"], 'kymo run: --xla takes all or a number of steps, not "0"'),
    (["run", "--max-overhead=0%", "--", "true"],
     'kymo run: --max-overhead takes a share of the time from 0.05% to 100%, such as 1%, not "0%"'),
    (["run", "--torch-ops=0", "--", "true"], 'kymo run: --torch-ops takes all or a number of steps, not "0"'),
    (["run", "--peak-flops", "many", "--", "true"], 'kymo run: --peak-flops takes FLOP/s, such as 312e12, or measure, not "many"'),
    (["attach"], "kymo attach: expected one PID; usage: kymo attach [OPTIONS] PID"),
    (["attach", "--all", "1"], "kymo attach: use either a PID or --all, not both"),
    (["attach", "--match", "x", "1"], "kymo attach: --match chooses among the programs of --all"),
    (["attach", "--all", "--force"], "kymo attach: --force replaces one recording; it does not work with --all"),
    (["attach", "--all", "--match", "("],
     'kymo attach: --match takes an extended regular expression, not "(": Unmatched ( or \\('),
    (["qeury"], "kymo: unknown command qeury; did you mean query?"),
    (["snap"], "kymo: unknown command snap; did you mean snapshot?"),
    (["zzzzzz"], "kymo: unknown command zzzzzz; kymo help lists the commands"),
    (["lake", "add", "--tier", "3", "a", "b"], "kymo lake: --tier needs a number from 0 to 2, not 3"),
    (["--frobnicate"], "kymo: unknown command --frobnicate; kymo help lists the commands"),
    (["help", "qeury"], "kymo help: unknown command qeury; kymo help lists the commands"),
    (["help", "ls", "rm"], "kymo help: expected one command, got 2"),
    (["version", "x"], "kymo version: unexpected argument x"),
    (["query"], "kymo query: no SQL given; for example: kymo query 'FROM trace.regions'"),
    (["query", "a", "b", "c"], "kymo query: expected TARGET and SQL, got 3 arguments; put the SQL in quotes"),
    (["query", "--fromat", "csv", "x"], "kymo query: unknown option --fromat; did you mean --format?"),
    (["query", "--zzz", "x"], "kymo query: unknown option --zzz; kymo help query lists the options"),
    (["query", "-z", "x"], "kymo query: unknown option -z; kymo help query lists the options"),
    (["query", "-f", "jsn", "x"], "kymo query: unknown format jsn; did you mean json?"),
    (["query", "-f", "xml", "x"],
     "kymo query: unknown format xml; use table, json, csv, arrow or parquet"),
    (["query", "x", "-f"], "kymo query: --format needs a value: table|json|csv|arrow|parquet"),
    (["query", "--force=1", "x"], "kymo query: --force takes no value"),
    (["query", "--limit", "-1", "x"], "kymo query: --limit needs a number from 0 to 1e+15, not -1"),
    (["query", "--limit", "many", "x"], "kymo query: --limit needs a number from 0 to 1e+15, not many"),
    (["query", "--timeout", "nan", "x"], "kymo query: --timeout needs a number from 0 to 4000000, not nan"),
    (["query", " ; "], "kymo query: the SQL is empty"),
    (["mcp", "a", "b"], "kymo mcp: expected one TARGET, got 2"),
    (["mcp", "localhost:8086"], "kymo mcp: localhost:8086 is an address, and only recordings of this machine are read; "
     "start kymo mcp there, for example with ssh"),
    (["ls", "here"], "kymo ls: unexpected argument here; kymo ls lists all recordings"),
    (["ls", "-f", "xml"], "kymo ls: unknown format xml; use text or json"),
    (["report", "a", "b"], "kymo report: expected one TARGET, got 2"),
    (["report", "--no-source", "a"], "kymo report: --no-source works with html only"),
    (["report", "--no-source", "-f", "json", "a"], "kymo report: --no-source works with html only"),
    (["snapshot"], "kymo snapshot: expected a file, or a target and a file; usage: kymo snapshot [OPTIONS] [TARGET] FILE"),
    (["pack", "a", "b", "c"], "kymo pack: too many arguments; usage: kymo pack [OPTIONS] [TARGET] [FILE]"),
    (["rm"], "kymo rm: no recording given; use kymo rm TARGET or kymo rm --dead (kymo ls lists recordings)"),
    (["rm", "--dead", "x"], "kymo rm: use either targets or --dead, not both"),
    (["rm", "--ded"], "kymo rm: unknown option --ded; did you mean --dead?"),
    (["query", "--bad\x1b[31m", "x"], "kymo query: unknown option --bad\\x1b[31m; kymo help query lists the options"),
]


@pytest.mark.parametrize("arguments,line", WRONG, ids=[" ".join(a).replace("\x1b", "ESC") for a, _ in WRONG])
def test_wrong_use_is_one_line_and_status_2(kymo, arguments, line):
    result = kymo(*arguments)
    assert (result.status, result.out, result.err) == (2, "", line + "\n")


@pytest.mark.parametrize("command", [["query", "SELECT 1"], ["report"], ["compare", "latest", "latest"], ["export"],
                                     ["pack"], ["snapshot", "f"], ["rm", "latest"]])
def test_without_any_recording_it_says_how_to_make_one(kymo, command):
    result = kymo(*command)
    assert result.status == 1 and result.out == ""
    assert "kymo run" in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_completion_offer_the_same_options(kymo, command):
    listed = re.findall(r"^  (?:-\w, |    )(--[\w-]+)", kymo(command, "--help").out, re.M)
    assert listed == [line.split("\t")[0] for line in kymo("completion", "--", command, "--").out.splitlines()]
    assert "--help" in listed
