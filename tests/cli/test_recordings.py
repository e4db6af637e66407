"""ls, snapshot, pack, rm, and recordings that are missing, foreign, cut or newer."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import time

import pytest

from conftest import KYMO, PROGS


def live(kymo):
    """A fixture that waits inside two zones; end it by closing its stdin."""
    child = subprocess.Popen([PROGS / "cli_fixture", "open"], env={**kymo.env, "KYMO": "on"}, cwd=kymo.cwd,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    child.stdout.readline()
    return child


# --- ls --------------------------------------------------------------------------------------------------------

def test_ls_of_nothing(kymo):
    result = kymo("ls")
    assert (result.status, result.out, result.err) == (0, "", "no recordings yet; record one with kymo run -- PROGRAM\n")
    assert kymo("ls", "-f", "json").out == "[]\n"


def test_ls_shows_live_ones_first_and_the_latest(kymo):
    kymo.record("killed")
    time.sleep(1.1)
    kymo.record("plain")
    child = live(kymo)
    out = kymo("ls").out.splitlines()
    child.communicate(b"")
    assert out[0].split() == ["PROGRAM", "STATE", "STARTED", "RAN", "STEPS", "SIZE", "RECORDING"]
    assert out[1].startswith("cli_fixture  live") and out[1].endswith(f"pid {child.pid}")
    assert re.match(r"  in outer for [\d.]+ \S+ > inner for [\d.]+ \S+; no row yet$", out[2])
    assert re.search(r" ended .* 40 .* kB|MB", out[3])
    assert len(out) == 5


def test_ls_names_each_as_other_commands_take_it(kymo):
    paths = [kymo.record("plain") for _ in range(3)]
    lines = kymo("ls").out.splitlines()[1:]
    words = [line.split("  ")[-1] for line in lines]
    assert words[0] == "latest" and len(words) == 3
    assert all(len(line) <= 80 for line in lines)
    found = {json.loads(kymo("query", "-f", "json", word.removeprefix("pid "), "SELECT path FROM kymo.runs").out)[0]["path"]
             for word in words}
    assert found == {str(path) for path in paths}


def test_ls_shows_the_names_that_runs_were_given_for_other_commands_take_them(kymo):
    for name in (["-n", "sixteen-columns!"], ["-n", "sixteen-columns!"], []):
        assert kymo("run", "-q", *name, "--", PROGS / "cli_fixture", "killed").status == -9
    recorded = json.loads(kymo("ls", "-f", "json").out)
    head, *lines = kymo("ls").out.splitlines()
    assert head.split() == ["PROGRAM", "STATE", "STARTED", "RAN", "STEPS", "SIZE", "RECORDING"]
    assert all(re.match(r"\S+ +SIGKILL  ", line) for line in lines) and max(map(len, lines[:2])) <= 80
    *words, older = [line.split("  ")[-1] for line in lines]
    assert words == ["latest", "sixteen-columns!"] and "sixteen-columns!" in older
    for word, one in zip([*words, older.split(" (")[0]], recorded, strict=True):
        assert kymo("query", "-f", "csv", word, "SELECT path FROM kymo.runs").out == f"path\n{one['path']}\n"
    assert [one["name"] for one in recorded] == [None, "sixteen-columns!", "sixteen-columns!"]


def test_a_long_name_leaves_the_line_within_80_columns(kymo):
    assert kymo("run", "-n", "a_name_" * 9, "--", PROGS / "cli_fixture", "killed").status == -9
    head, line = kymo("ls").out.splitlines()
    assert len(head) <= 80 and len(line) <= 80 and re.search(r"  latest \(a_name_a\S*…\S*_name_\)$", line)
    assert json.loads(kymo("ls", "-f", "json").out)[0]["name"] == "a_name_" * 9


def test_ls_gives_one_name_to_one_recording(kymo):
    folders = [kymo.home / "a_name_that_is_much_too_long_for_a_line" / letter / "same" for letter in "abc"]
    for folder in folders:
        folder.parent.mkdir(parents=True)
        assert kymo("run", "-q", "-o", folder, "--", PROGS / "cli_fixture", "plain").status == 0
    words = [line.split("  ")[-1] for line in kymo("ls").out.splitlines()[1:]]
    assert words[0] == "latest" and len(words) == 3
    found = {json.loads(kymo("query", "-f", "json", word.removeprefix("pid "), "SELECT path FROM kymo.runs").out)[0]["path"]
             for word in words}
    assert found == {str(folder) for folder in folders}


def test_ls_as_json(kymo):
    path = kymo.record("plain")
    [one] = json.loads(kymo("ls", "-f", "json").out)
    assert one["path"] == str(path) and one["program"] == "cli_fixture" and one["state"] == "ended"
    assert one["steps"] == 40 and one["bytes"] > 0 and one["unreadable"] is None
    assert one["started_unix_ns"] <= one["ended_unix_ns"]


def test_ls_knows_when_a_lost_program_ended_by_its_last_row(kymo):
    path = kymo.record("killed")
    [one] = json.loads(kymo("ls", "-f", "json").out)
    duration, = json.loads(kymo("query", "-f", "json", path, "SELECT duration_ns FROM kymo.runs").out)
    assert one["state"] in ("killed", "lost")
    assert one["ended_unix_ns"] >= one["started_unix_ns"] + duration["duration_ns"] - 1000 > one["started_unix_ns"]
    assert kymo("ls").out.splitlines()[1].split("  ")[-2].strip() != "-"


def copies(kymo, count):
    """So many recordings of one program, beside the first."""
    path = kymo.record("plain")
    return [path] + [pathlib.Path(shutil.copytree(path, path.with_name(f"copy-{i}"))) for i in range(count - 1)]


@contextlib.contextmanager
def opened_below(folders):
    """The files below these folders that are opened in the block, by folder: the kernel tells (inotify)."""
    libc, found, watched = ctypes.CDLL(None, use_errno=True), {}, {}
    fd = libc.inotify_init1(os.O_NONBLOCK)
    if fd < 0:
        pytest.skip("no inotify to be had")
    for top in folders:
        for folder in [top, *(p for p in top.rglob("*") if p.is_dir())]:
            watched[libc.inotify_add_watch(fd, bytes(folder), 0x20)] = top
    yield found
    with contextlib.suppress(BlockingIOError):
        while data := os.read(fd, 65536):
            while data:
                number, mask, _, length = struct.unpack_from("iIII", data)
                if not mask & 0x40000000 and length:  # not a folder
                    found.setdefault(watched[number], []).append(data[16:16 + length].rstrip(b"\0").decode())
                data = data[16 + length:]
    os.close(fd)


def test_ls_shows_the_newest_twenty_and_looks_into_no_others(kymo):
    folders = copies(kymo, 60)
    with opened_below(folders) as opened:
        lines = kymo("ls").out.splitlines()
    assert len(lines) == 22 and lines[-1] == "… and 40 more: kymo ls --all"
    looked_into = [folder for folder, names in opened.items() if any(name not in ("run", "control") for name in names)]
    assert len(looked_into) <= 20
    # How each one ended is in few small files.
    assert max(len(names) for folder, names in opened.items() if folder not in looked_into) <= 8
    assert len(kymo("ls", "--all").out.splitlines()) == 61
    assert len(json.loads(kymo("ls", "-f", "json").out)) == 60


def test_ls_tells_the_steps_of_the_newest_among_many(kymo):
    copies(kymo, 150)
    assert re.search(r" 40 +\S+ [kM]B  ", kymo("ls").out.splitlines()[1])


def test_steps_that_were_not_looked_for_are_not_none(kymo):
    kymo.record("plain")
    assert kymo("pack").status == 0
    assert sorted(re.search(r" (\S+) +\S+ [kM]B  ", line)[1] for line in kymo("ls").out.splitlines()[1:]) == ["40", "?"]


def test_ls_says_what_it_cannot_read(kymo):
    kymo.record("plain")
    assert kymo("snapshot", "latest", "a.kymo").status == 0
    bytes = bytearray((kymo.cwd / "a.kymo").read_bytes())
    bytes[8:12] = (99).to_bytes(4, "little")
    (kymo.cwd / "a.kymo").write_bytes(bytes)
    result = kymo("ls")
    assert result.status == 0
    [line] = [line for line in result.out.splitlines() if line.startswith("a.kymo")]
    assert "unreadable: " in line and "99" in line


# --- names -----------------------------------------------------------------------------------------------------

def test_the_name_that_a_run_was_given_is_a_target(kymo):
    for name in ("twice", "twice", "once"):
        assert kymo("run", "-q", "-n", name, "--", PROGS / "cli_fixture", "plain").status == 0
    runs = {one["path"]: one["name"] for one in json.loads(kymo("ls", "-f", "json").out)}
    assert sorted(runs.values()) == ["once", "twice", "twice"]
    [path] = json.loads(kymo("query", "-f", "json", "once", "SELECT path FROM kymo.runs").out)
    assert runs[path["path"]] == "once"
    refused = kymo("rm", "twice")
    assert refused.status == 1
    assert refused.err.startswith("kymo rm: 2 recordings are named twice; give a path instead, the newest is /")
    assert kymo("rm", "once").err.startswith(f"kymo: removed {path['path']}, ")
    assert sorted(one["name"] for one in json.loads(kymo("ls", "-f", "json").out)) == ["twice", "twice"]


# --- snapshot, pack --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("command,file", [("snapshot", "a.kymosnap"), ("pack", "a.kymo")])
def test_the_file_may_be_named_as_everywhere_else(kymo, command, file):
    kymo.record("plain")
    assert kymo(command, "-o", file).status == 0
    assert kymo("query", kymo.cwd / file, "-f", "csv", "SELECT count(*) AS n FROM trace.zones").out == "n\n120\n"
    assert kymo(command, "latest", file, "-o", file).status == 2
    assert kymo(command, "--force", "--output", file, "latest").status == 0


@pytest.mark.parametrize("command,file", [("snapshot", "a.kymosnap"), ("pack", "a.kymo")])
def test_no_file_is_replaced_without_force(kymo, command, file):
    kymo.record("plain")
    (kymo.cwd / file).write_text("old")
    result = kymo(command, "latest", file)
    assert (result.status, result.err) == (1, f"kymo {command}: {file} exists; --force overwrites it\n")
    assert (kymo.cwd / file).read_text() == "old"
    assert kymo(command, "--force", "latest", file).status == 0
    assert kymo("query", kymo.cwd / file, "-f", "csv", "SELECT count(*) AS n FROM trace.zones").out == "n\n120\n"
    assert [p.name for p in kymo.cwd.iterdir()] == [file]


def test_a_running_program_can_be_snapshot(kymo):
    child = live(kymo)
    result = kymo("snapshot", str(child.pid), "now.kymosnap")
    child.communicate(b"")
    assert result.status == 0, result.err
    out = kymo("query", "now.kymosnap", "-f", "csv", "SELECT name FROM trace.open_zones ORDER BY depth").out
    assert out == "name\nouter\ninner\n"


def test_pack_names_the_file_after_the_program_and_says_its_size(kymo):
    kymo.record("plain")
    result = kymo("pack")
    assert result.status == 0
    assert re.fullmatch(r"kymo: cli_fixture\.kymo, \d+ [kM]B\n", result.err)
    assert (kymo.cwd / "cli_fixture.kymo").exists()


def test_what_is_one_file_already_is_not_packed_or_snapshot_again(kymo):
    kymo.record("plain")
    assert kymo("pack", "latest", "a.kymo").status == 0
    assert "is already packed" in kymo("pack", "a.kymo", "b.kymo").err
    assert "one file already" in kymo("snapshot", "a.kymo", "b.kymosnap").err


# --- rm --------------------------------------------------------------------------------------------------------

def test_rm_removes_and_says_what(kymo):
    path = kymo.record("plain")
    result = kymo("rm", "latest")
    assert result.status == 0 and re.fullmatch(rf"kymo: removed {re.escape(str(path))}, \d+ [kM]B\n", result.err)
    assert not path.exists()


def test_rm_refuses_a_live_one(kymo):
    child = live(kymo)
    result = kymo("rm", str(child.pid))
    count = len(list((kymo.home / "live").iterdir()))
    child.communicate(b"")
    assert result.status == 1 and count == 1 and len(result.err.splitlines()) == 1


def test_rm_dead_spares_the_living_and_the_packed(kymo):
    for _ in range(2):
        kymo.record("plain")
    assert kymo("pack").status == 0
    child = live(kymo)
    result = kymo("rm", "--all-dead")
    left = list((kymo.home / "live").iterdir())
    child.communicate(b"")
    assert result.status == 0 and "kymo: removed 2 recordings, " in result.err
    assert len(left) == 1 and (kymo.cwd / "cli_fixture.kymo").exists()


def test_rm_refuses_what_is_no_recording(kymo):
    precious = kymo.cwd / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    assert kymo("rm", precious).status == 1
    assert (precious / "file").exists()


# --- bad recordings --------------------------------------------------------------------------------------------

COMMANDS = [["query", "PATH", "SELECT count(*) FROM trace.zones"], ["report", "PATH"], ["pack", "PATH", "x.kymo"],
            ["snapshot", "PATH", "x.kymosnap"], ["rm", "PATH"]]


def run_all(kymo, path):
    for command in COMMANDS:
        yield kymo(*[path if word == "PATH" else word for word in command])


def test_a_missing_recording_is_named(kymo):
    for result in run_all(kymo, "no/such.kymo"):
        assert (result.status, result.out) == (1, "")
        assert "no/such.kymo" in result.err and len(result.err.splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"x", b"#!/bin/sh\necho\n", os.urandom(5000), b"KYMOSNP\0" + b"\xff" * 200,
                                     b"KYMORUN\0" + b"\0" * 20, b"\0" * 8 + b"DUCK" + b"\xff" * 8192])
def test_a_foreign_file_is_refused(kymo, content):
    file = kymo.cwd / "foreign"
    file.write_bytes(content)
    for result in run_all(kymo, file):
        assert (result.status, result.out) == (1, "")
        assert "foreign" in result.err
    assert file.read_bytes() == content


def test_an_empty_directory_is_no_recording(kymo):
    (kymo.cwd / "empty").mkdir()
    for result in run_all(kymo, "empty"):
        assert (result.status, result.out) == (1, "") and "empty" in result.err
    assert (kymo.cwd / "empty").is_dir()


def test_what_is_left_of_a_cut_snapshot_is_read_or_refused_with_a_sentence(kymo):
    kymo.record("plain")
    assert kymo("snapshot", "latest", "a.kymosnap").status == 0
    whole = (kymo.cwd / "a.kymosnap").read_bytes()
    for share in (0.05, 0.3, 0.6, 0.9, 0.999):
        (kymo.cwd / "cut").write_bytes(whole[:int(len(whole) * share)])
        result = kymo("query", "cut", "-f", "csv", "SELECT count(*) AS n FROM trace.zones")
        if result.status:
            assert result.status == 1 and "cut" in result.err
        else:
            assert int(result.out.split()[1]) <= 120


def test_a_recording_without_its_run_file_still_answers(kymo):
    path = kymo.record("plain")
    (path / "run").unlink()
    result = kymo("query", path, "-f", "csv", "SELECT count(*) AS n FROM trace.zones")
    assert result.out == "n\n120\n" or (result.status == 1 and str(path.name) in result.err)


def test_a_damaged_file_of_a_recording_is_said_first_in_the_report(kymo):
    path = kymo.record("plain")
    [names] = path.glob("p*/names")
    names.write_bytes(b"not names at all")
    result = kymo("report", path)
    assert result.status == 0, result.err
    assert result.out.lstrip().startswith("Damaged: ")


def test_a_newer_version_is_named(kymo):
    kymo.record("plain")
    assert kymo("snapshot", "latest", "a.kymosnap").status == 0
    bytes = bytearray((kymo.cwd / "a.kymosnap").read_bytes())
    bytes[8:12] = (99).to_bytes(4, "little")
    (kymo.cwd / "newer").write_bytes(bytes)
    for result in run_all(kymo, "newer"):
        assert result.status == 1 and "newer" in result.err
        assert "99" in result.err or result.err.startswith("kymo rm: ")
    assert (kymo.cwd / "newer").exists()


def test_without_duckdb_query_says_what_is_missing(kymo, tmp_path):
    kymo.record("plain")
    result = kymo("query", "SELECT 1", env={"KYMO_DUCKDB": str(tmp_path / "nothing.so")})
    assert result.status == 1 and "nothing.so" in result.err and result.out == ""


def test_latest_is_of_this_directory_and_named_and_a_live_program_elsewhere_is_not(kymo):
    """A run of this directory comes before a newer one that still runs elsewhere."""
    other = kymo.home / "elsewhere"
    other.mkdir()
    assert kymo("run", "-q", "-n", "mine", "--", "true").status == 0
    mine, = kymo.cwd.glob("kymo-mine-*")
    loud = {"KYMO_QUIET": "0"}
    with subprocess.Popen([KYMO, "run", "-q", "--", "sleep", "60"], cwd=other, env=kymo.env, stdin=subprocess.DEVNULL) as child:
        try:
            for _ in range(500):
                if list(other.glob("kymo-*/run")):
                    break
                time.sleep(0.02)
            done = kymo("query", "SELECT path FROM kymo.runs", env=loud)
            assert done.status == 0 and str(mine) in done.out and f"recording {mine}" in done.err
            done = kymo("report", env=loud)
            assert (done.status, done.err) == (0, f"recording {mine}\n")
            assert kymo("report", "latest", env=loud).err == kymo("report").err == ""
            said = f"recording {mine}\n"
            for words in (["query", "-f", "csv", "SELECT path FROM kymo.runs"], ["query", "-f", "json", "SELECT 1"],
                          ["report", "-f", "json"], ["top"], ["flame"]):
                done = kymo(*words, env=loud)
                assert said in done.err and said not in kymo(*words).err, (words, done.err)
            for words in (["snapshot", "a.kymosnap"], ["pack", "-o", "a.kymo"], ["export", "-o", "a.json"]):
                assert kymo(*words, env=loud).err.startswith(said), words
        finally:
            child.terminate()


def test_a_name_is_found_at_once_also_beside_a_file_of_that_name(kymo):
    for i in range(5):
        assert kymo("run", "-q", "-n", f"name{i}", "--", "true").status == 0
        assert kymo("report", f"name{i}").status == 0
    (kymo.cwd / "plain").write_text("a program of this name")
    (kymo.cwd / "other").write_text("no recording has this name")
    assert kymo("run", "-q", "-n", "plain", "--", "true").status == 0
    done = kymo("report", "plain")
    assert done.status == 0, done.err
    done = kymo("report", "other")
    assert done.status == 1 and "other" in done.err


def test_a_snapshot_has_run_as_long_as_its_recording_whenever_it_was_taken(kymo):
    assert kymo("run", "-q", "-o", "rec", "--", "sleep", "0.3").status == 0
    time.sleep(1.5)
    assert kymo("snapshot", "rec", "a.kymosnap").status == 0 and kymo("pack", "rec", "a.kymo").status == 0
    rows = {line.split()[-1]: line for line in kymo("ls").out.splitlines()}
    assert re.search(r":\d\d +(\d{3} ms|1\.[0-3]\d s) ", rows["a.kymosnap"]), rows
    assert re.search(r":\d\d +- ", rows["a.kymo"]), rows  # to know it, the file would have to be opened


@pytest.mark.parametrize("word", ["rec", "latest", "PATH", "4711"])
def test_a_query_of_a_recording_without_sql_is_told_what_is_missing(kymo, word):
    path = kymo.record("plain")
    path.rename(kymo.cwd / "rec")
    word = str(kymo.cwd / "rec") if word == "PATH" else word
    done = kymo("query", word)
    assert (done.status, done.out) == (2, "")
    assert done.err == f"kymo query: no SQL given for {word}; for example: kymo query {word} 'FROM trace.places'\n"
