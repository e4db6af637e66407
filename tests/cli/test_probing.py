"""The words of Probing."""
import os
import re
import subprocess

import pytest
from conftest import KYMO, ROOT
from probe_tools import rows, running

PROBING = KYMO.with_name("probing")
SEEDS = ROOT.parent / "shared/seeds"


def probing(kymo, *words):
    done = subprocess.run([PROBING, *map(str, words)], cwd=kymo.cwd, env=kymo.env, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_the_documents_own_line_runs_as_it_stands(kymo):
    pages = sorted(SEEDS.glob("004_*"))
    if not pages:
        pytest.skip("the document is not here")
    line = re.search(r"^probing \$ENDPOINT config .*$", pages[0].read_text(), re.MULTILINE).group()
    with running(kymo, env={"KYMO": "on", "KYMO_SAMPLE_RATE": "0.5"}) as program:
        env = {**kymo.env, "ENDPOINT": str(program.pid), "PATH": f"{PROBING.parent}:{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-c", line], cwd=kymo.cwd, env=env, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "sample_rate=0.1 (was 0.5)\n")
        assert rows(kymo, program.pid, "SELECT key, old, new FROM kymo.config") == \
            [{"key": "sample_rate", "old": "0.5", "new": "0.1"}]


def test_words_are_handed_to_kymo_with_and_without_t(kymo):
    with running(kymo, env={"KYMO": "on"}) as program:
        assert probing(kymo, "-t", program.pid, "config", "probing.torch") == (0, "off\n", "")
        assert probing(kymo, program.pid, "config", "zones=off")[:2] == (0, "zones=off (was on)\n")
        status, out, _ = probing(kymo, program.pid, "query", "-f", "csv", "SELECT 40 + 2 AS n")
        assert (status, out.splitlines()) == (0, ["n", "42"])
        assert f"pid {program.pid}" in probing(kymo, "list")[1]
        status, _, err = probing(kymo, "-t", program.pid, "inject", "--duration", "0.1")
        assert (status, err) == (0, "")
        assert rows(kymo, program.pid, "SELECT count(*) > 0 AS some FROM host.process") == [{"some": True}]


@pytest.mark.parametrize("word", ["eval", "repl"])
def test_what_would_run_code_in_the_program_is_refused_with_the_reason(kymo, word):
    assert probing(kymo, "1", word, "print(1)") == (
        1, "", f"probing: {word} is refused: kymo never runs code inside the program; "
        "use query or backtrace\n")


def test_addresses_and_wrong_use_are_one_sentence(kymo):
    assert probing(kymo, "-t", "localhost:1", "query", "SELECT 1") == (
        1, "", "kymo query: cannot connect to kymo serve at localhost:1: Connection refused; check that it is running and "
        "listens on that address (--listen)\n")
    assert probing(kymo) == (2, "", "probing: no command given; probing --help lists the commands\n")
    assert probing(kymo, "1") == (2, "", "probing: no command given; probing --help lists the commands\n")
    assert probing(kymo, "1", "conifg") == (2, "", "probing: unknown command conifg; probing --help lists the commands\n")
    assert probing(kymo, "config") == (2, "", "probing: no endpoint given; use probing ENDPOINT config, with a pid or host:port\n")
    status, out, err = probing(kymo, "--help")
    assert (status, err) == (0, "") and all(word in out for word in ["list", "config", "query", "backtrace", "inject"])
