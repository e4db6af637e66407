"""kymo query, backtrace, config and report of a host:port, and the words of Probing."""
import json
import subprocess

import pyarrow.ipc

from conftest import KYMO, PROGS, SECONDS, Server, environment, make_home, program, run_kymo, until

PROBING = KYMO.with_name("probing")


def test_queries_are_answered_from_there_as_from_here(server, home, recording):
    there = f"127.0.0.1:{server.port}"
    sql = "SELECT name, count(*) AS n FROM trace.zones WHERE name IN ('inner', 'outer') GROUP BY 1 ORDER BY 1"
    for form in ("table", "json", "csv"):
        assert run_kymo(home, "query", there, "-f", form, sql)[:2] == run_kymo(home, "query", recording, "-f", form, sql)[:2]
    status, _, err = run_kymo(home, "query", f"localhost:{server.port}", "-f", "arrow", "-o", home / "there.arrow", sql)
    assert (status, err) == (0, "")
    assert pyarrow.ipc.open_stream((home / "there.arrow").read_bytes()).read_all().num_rows == 2
    status, out, err = run_kymo(home, "query", there, "-f", "arrow", "-o", home / "there.arrow", sql)
    assert status == 1 and "there.arrow" in err, "it is not replaced without --force"
    assert run_kymo(home, "query", there, "-f", "csv", "-n", "3", "FROM range(9)")[1].splitlines() == ["range", "0", "1", "2"]


def test_failures_there_are_sentences_here(server, home):
    there = f"127.0.0.1:{server.port}"
    status, out, err = run_kymo(home, "query", there, "SELECT nothing")
    assert (status, out) == (1, "") and err.startswith("kymo query: Binder Error")
    assert run_kymo(home, "query", there, "COPY (SELECT 1) TO '/tmp/x'")[0] == 1
    assert run_kymo(home, "query", there, "--unsafe", "SELECT 1") == \
        (2, "", "kymo query: --unsafe does not work with kymo serve, which is read-only\n")
    assert run_kymo(home, "query", f"{there}/nobody", "SELECT 1")[2] == \
        "kymo query: no such target: nobody; GET /api/targets lists the targets\n"
    status, _, err = run_kymo(home, "query", "localhost:1", "SELECT 1")
    assert status == 1 and err == ("kymo query: cannot connect to kymo serve at localhost:1: Connection refused; check that it is "
                                   "running and listens on that address (--listen)\n")


def test_reports_come_from_there(server, home, recording):
    there = f"127.0.0.1:{server.port}"
    mine, own = run_kymo(home, "report", there)[1], run_kymo(home, "report", recording)[1]
    # The clock's error is measured anew at each look.
    assert mine.splitlines()[0].split("  clock")[0] == own.splitlines()[0].split("  clock")[0] and "trained.py  exit 0" in mine
    assert run_kymo(home, "report", there, home / "there.html")[0] == 0
    assert (home / "there.html").read_bytes().startswith(b"<!doctype html>")


def test_a_token_is_sent_and_asked_for(tmp_path):
    home = make_home(tmp_path)
    server = Server(home, "--listen", "0.0.0.0", env={"KYMO_TOKEN": "sesame"})
    try:
        there = f"localhost:{server.port}"
        with program(home, KYMO, "run", "-q", "--", PROGS / "probe_loop"):
            until(lambda: run_kymo(home, "ls")[1])
            # Where the server's own socket is not found, the port is asked, and the token is needed.
            (tmp_path / "elsewhere").mkdir(mode=0o700)
            elsewhere = {"KYMO_DIR": str(tmp_path / "elsewhere")}
            assert run_kymo(home, "query", there, "SELECT 1", env=elsewhere)[2].startswith("kymo query: the token is missing or wrong")
            ask = {"KYMO_TOKEN": "sesame", **elsewhere}
            assert run_kymo(home, "query", there, "-f", "csv", "SELECT 40 + 2 AS n", env=ask)[:2] == (0, "n\n42\n")
            # The words of Probing, with an address for an endpoint.
            words = [PROBING, "-t", there, "config", "probing.sample_rate=0.5"]
            done = subprocess.run(words, env={**environment(home), **ask}, capture_output=True, text=True, timeout=SECONDS)
            assert (done.returncode, done.stdout) == (0, "sample_rate=0.5 (was adaptive)\n"), done.stderr
            assert run_kymo(home, "config", there, "sample_rate", env=ask)[1] == "0.5\n"
            settings = json.loads(run_kymo(home, "config", "-f", "json", there, env=ask)[1])["settings"]
            assert {"key": "sample_rate", "value": "0.5"}.items() <= settings[0].items()
            assert "0.5" in run_kymo(home, "config", there, env=ask)[1].splitlines()[0]
            status, out, err = run_kymo(home, "backtrace", "--json", there, env=ask)
            assert status == 0 or "ptrace_scope" in err
            if status == 0:
                pid = json.loads(out)[0]["pid"]
                assert f"pid {pid}, 1 thread" in run_kymo(home, "backtrace", f"{there}/{pid}", env=ask)[1]
    finally:
        assert server.stop() == 0
