"""What works on this machine, and what a shell offers at the Tab key."""
import json
import os
import shutil
import subprocess

import pytest
from conftest import KYMO

STATES = {"works", "absent", "limited", "broken"}


def test_everything_that_commands_rely_on_is_looked_at(kymo):
    result = kymo("doctor", "-f", "json")
    findings = {row["name"]: row for row in json.loads(result.out)}
    assert list(findings) == ["memory", "disk", "clock", "sql", "python", "torch", "stacks", "native", "perf", "viewer",
                              "pressure", "gpu", "opencl", "itt", "nvtx", "cupti", "jax", "vaccel", "tracy", "nrt", "probing"]
    assert {row["state"] for row in findings.values()} <= STATES
    assert findings["sql"]["state"] == "works" and findings["sql"]["found"].startswith("DuckDB v1.")
    assert (result.status, result.err) == (0, "")


def test_text_fits_80_columns(kymo):
    result = kymo("doctor")
    assert result.status == 0
    assert all(len(line) <= 80 for line in result.out.splitlines())


def test_what_is_broken_fails_and_says_what_helps(kymo, tmp_path):
    (tmp_path / "libduckdb.so").write_text("no library")
    result = kymo("doctor", "-f", "json", env={"KYMO_DUCKDB": str(tmp_path / "libduckdb.so")})
    sql = next(row for row in json.loads(result.out) if row["name"] == "sql")
    assert (result.status, sql["state"]) == (1, "broken")
    assert "cannot load DuckDB from KYMO_DUCKDB" in sql["found"]
    assert sql["mend"] == "run make to fetch it, or set KYMO_DUCKDB to a libduckdb.so"


def test_a_missing_python_is_no_failure(kymo, tmp_path):
    result = kymo("doctor", "-f", "json", env={"PATH": str(tmp_path)})
    python = next(row for row in json.loads(result.out) if row["name"] == "python")
    assert (result.status, python["state"]) == (0, "absent")


def offered(kymo, *words):
    result = kymo("completion", "--", *words)
    assert (result.status, result.err) == (0, "")
    return [line.split("\t")[0] for line in result.out.splitlines()]


def test_commands_options_values_and_targets_are_offered(kymo):
    assert offered(kymo, "ba") == ["backtrace"]
    assert offered(kymo, "help", "q") == ["query"]
    assert offered(kymo, "run", "--torch-") == ["--torch-modules", "--torch-every", "--torch-ops"]
    assert offered(kymo, "run", "--keep", "") == ["all", "flight"]
    assert offered(kymo, "ls", "-f", "j") == ["json"]
    assert offered(kymo, "query", "la") == ["latest"]
    assert offered(kymo, "nonsense", "x") == []
    assert "--help" in offered(kymo, "query", "--")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_can_load_its_script(kymo, shell):
    script = kymo("completion", shell)
    assert script.status == 0 and f"kymo completion {shell} --" in script.out
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n"], input=script.out, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_as_a_person_types():
    script = f"""
        PATH={KYMO.parent}:$PATH
        eval "$(kymo completion bash)"
        COMP_LINE="kymo run --kee" COMP_POINT=14
        _kymo kymo --kee run
        echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout == "--keep\n"


def test_no_shell_is_a_sentence(kymo):
    result = kymo("completion", "tcsh")
    assert (result.status, result.err) == (2, "kymo completion: expected one shell: bash, zsh or fish\n")


def doors(kymo, **env):
    result = kymo("doctor", "-f", "json", env=env)
    return {row["name"]: (row["state"], row["found"], row["mend"]) for row in json.loads(result.out)}


def test_each_door_is_named_with_the_reason_why_it_is_closed(kymo, tmp_path):
    here = doors(kymo, LD_LIBRARY_PATH="")
    assert here["itt"] == here["nvtx"] == ("works", "set by kymo run", "")
    assert here["vaccel"][0] == here["tracy"][0] == here["probing"][0] == "works"
    theirs = doors(kymo, NVTX_INJECTION64_PATH="/their/tool.so", INTEL_LIBITTNOTIFY64="/their/collector.so")
    assert theirs["nvtx"] == ("absent", "NVTX_INJECTION64_PATH is set to another tool: /their/tool.so", "unset NVTX_INJECTION64_PATH")
    assert theirs["itt"] == ("absent", "INTEL_LIBITTNOTIFY64 is set to another tool: /their/collector.so", "unset INTEL_LIBITTNOTIFY64")


def test_the_neuron_runtime_is_found_where_the_loader_looks(kymo, tmp_path):
    (tmp_path / "libnrt.so.1").write_text("")
    assert doors(kymo, LD_LIBRARY_PATH=f"/nowhere:{tmp_path}")["nrt"][:2] == (
        "works", "libnrt.so.1; calls are recorded by kymo run --device")
