"""Help, versions and wrong use."""
import re

import pytest

from conftest import ROOT

COMMANDS = ["run", "attach", "ls", "config", "query", "backtrace", "report", "compare", "export", "snapshot", "pack", "rm", "serve",
            "doctor", "completion", "help", "version"]


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"], ["-h"]])
def test_help_lists_every_command(kymo, arguments):
    result = kymo(*arguments)
    assert result.status == 0 and result.err == ""
    for command in COMMANDS:
        assert f"  kymo {command}" in result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_has_usage_options_and_an_example(kymo, command):
    result = kymo("help", command)
    assert result.status == 0 and result.err == ""
    assert result.out.startswith(f"usage: kymo {command}")
    assert "\nOptions:\n" in result.out
    assert f"\nExamples:\n  kymo {command}" in result.out
    assert kymo(command, "--help").out == result.out


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "run"])
def test_help_keeps_80_columns(kymo, command):
    for line in kymo("help", command).out.splitlines():
        assert len(line) <= 80, line


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_manual_and_help_agree_on_options(kymo, command):
    page = ROOT / "man" / (f"kymo-{command}.1" if command else "kymo.1")
    assert page.exists(), f"{page.name} is missing"
    text = page.read_text()
    assert text.startswith(".TH")
    assert ".SH EXAMPLES" in text
    if command:
        options = set(re.findall(r"--[a-z][a-z-]*", kymo("help", command).out.split("Examples:")[0]))
        listed = re.findall(r"--[a-z]+(?:-[a-z]+)*", text.replace("\\-", "-").split(".SH OPTIONS")[1].split(".SH")[0])
        assert set(listed) == options


@pytest.mark.parametrize("arguments", [["version"], ["--version"], ["-V"]])
def test_version(kymo, arguments):
    header = (ROOT / "include/kymo/kymo.h").read_text()
    version = re.search(r'#define KYMO_VERSION "(.*)"', header).group(1)
    result = kymo(*arguments)
    assert (result.status, result.out, result.err) == (0, f"kymo {version}\n", "")


WRONG = [
    (["qeury"], "kymo: no command is called qeury; did you mean query?"),
    (["snap"], "kymo: no command is called snap; did you mean snapshot?"),
    (["zzzzzz"], "kymo: no command is called zzzzzz; kymo help lists them"),
    (["--frobnicate"], "kymo: no command is called --frobnicate; kymo help lists them"),
    (["help", "qeury"], "kymo help: no command is called qeury; kymo help lists them"),
    (["help", "ls", "rm"], "kymo help: one command at a time, not 2"),
    (["version", "x"], "kymo version: takes no words, not x"),
    (["query"], "kymo query: what to ask? kymo query 'FROM trace.regions' (kymo help query says more)"),
    (["query", "a", "b", "c"], "kymo query: 3 words, at most TARGET and SQL are taken: put the SQL in quotes"),
    (["query", "--fromat", "csv", "x"], "kymo query: no option is called --fromat; did you mean --format?"),
    (["query", "--zzz", "x"], "kymo query: no option is called --zzz; kymo help query lists them"),
    (["query", "-z", "x"], "kymo query: no option is called -z; kymo help query lists them"),
    (["query", "-f", "jsn", "x"], "kymo query: no format is called jsn; did you mean json?"),
    (["query", "-f", "xml", "x"],
     "kymo query: no format is called xml; there are table, json, csv, arrow and parquet"),
    (["query", "x", "-f"], "kymo query: --format needs a value: FORMAT"),
    (["query", "--force=1", "x"], "kymo query: --force takes no value"),
    (["query", "--limit", "-1", "x"], "kymo query: --limit needs a number of 0 to 1e+15, not -1"),
    (["query", "--limit", "many", "x"], "kymo query: --limit needs a number of 0 to 1e+15, not many"),
    (["query", "--timeout", "nan", "x"], "kymo query: --timeout needs a number of 0 to 4000000, not nan"),
    (["query", " ; "], "kymo query: the SQL is empty"),
    (["ls", "here"], "kymo ls: it lists all recordings and takes no words, not here"),
    (["ls", "-f", "xml"], "kymo ls: no format is called xml; there are table and json"),
    (["report", "a", "b"], "kymo report: one target at a time, not 2"),
    (["snapshot"], "kymo snapshot: name a target and the file to write: kymo snapshot latest now.kymosnap"),
    (["pack", "a", "b", "c"], "kymo pack: a target and a file are all it takes: kymo pack latest run.kymo"),
    (["rm"], "kymo rm: which one? kymo ls lists them; kymo rm latest, or kymo rm --dead"),
    (["rm", "--dead", "x"], "kymo rm: either targets or --dead, not both"),
    (["rm", "--ded"], "kymo rm: no option is called --ded; did you mean --dead?"),
    (["query", "--bad\x1b[31m", "x"], "kymo query: no option is called --bad\\x1b[31m; kymo help query lists them"),
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
