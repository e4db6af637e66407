"""GET /api/source: lines of files that the recording names, and no other file of the machine, whatever a client or a recording asks."""
import os
import socket
import subprocess
import sys

import pytest
from conftest import PROGS, ROOT, Server, make_home, run_kymo

sys.path.append(str(ROOT / "tests/cli"))
from made import Made  # noqa: E402

SECRET = "the secret of another file"
APP = """import time

def work(n):
    total = 0
    for i in range(n):
        total += i  # </script><img src=x onerror=alert(1)>
    return total

work(10)
"""


def hostile_files(folder):
    """Files by name; each holds the secret, or waits, or never ends."""
    (folder / "secret.txt").write_text(SECRET)
    (folder / "id_rsa").write_text(SECRET)
    (folder / "target.py").write_text(SECRET)
    (folder / "link.py").symlink_to(folder / "secret.txt")
    (folder / "huge.py").write_bytes(b"#\n" * (1 << 20) + b"#")
    (folder / "zero.py").write_bytes(b"x = 1\n\0\0\0" + SECRET.encode())
    (folder / "folder.py").mkdir()
    os.mkfifo(folder / "fifo.py")
    (folder / "locked.py").write_text(SECRET)
    if os.geteuid() == 0:
        os.chown(folder / "locked.py", 65534, 65534)
    (folder / "locked.py").chmod(0o600 if os.geteuid() == 0 else 0)
    (folder / "loop.py").symlink_to(folder / "loop.py")
    (folder / "null.py").symlink_to("/dev/zero")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A server of a packed recording whose samples name these files."""
    home = make_home(tmp_path_factory.mktemp("source"))
    work = home / "work"
    (work / "app.py").write_text(APP)
    (work / "latin.py").write_bytes(b"# caf\xe9 \xff\xfe\nx = 1\r\ny = 2\n")
    (work / "empty.py").write_bytes(b"")
    (work / "old.py").write_text("x = 1\n")
    os.utime(work / "old.py", (1, 1))
    hostile_files(work)
    subprocess.run([PROGS / "made_run", home / "made", "train", "10"], check=True)
    assert run_kymo(home, "pack", home / "made", home / "template.kymo")[0] == 0
    named = ["app.py", "latin.py", "empty.py", "old.py", "link.py", "huge.py", "zero.py", "folder.py", "fifo.py", "locked.py",
             "loop.py", "null.py", "secret.txt", "id_rsa", "gone.py"]
    with Made(home / "template.kymo", home / "run.kymo") as rows:
        rows.sample([f"work ({work}/app.py:6)", f"<module> ({work}/app.py:9)"], 30)
        rows.sample([f"work ({work}/app.py:5)", f"<module> ({work}/app.py:9)"], 10)
        for name in named[1:]:
            rows.sample([f"f ({work}/{name}:1)"], 1)
        rows.sample(["g (relative.py:1)", f"h (../{work.name}/app.py:2)", "<module> (<frozen runpy>:88)", "k (/etc/passwd:1)"], 1)
        rows.db.execute("UPDATE kymo.runs SET cwd = ?, host = ?", [str(work), socket.gethostname()])
    (work / "relative.py").write_text("z = 1\n")
    server = Server(home, home / "run.kymo")
    server.work = str(work)
    yield server
    assert server.process.poll() is None and server.stop() == 0


def text_of(place, name):
    return place.get("/api/source", file=f"{place.work}/{name}")


def test_files_are_listed_with_their_samples_and_nothing_but_source(place):
    files = place.get("/api/source")["files"]
    assert files[0]["file"] == f"{place.work}/app.py" and files[0]["own"]
    assert (files[0]["samples"], files[0]["self_samples"]) == (40, 40)
    names = {file["file"] for file in files}
    assert "relative.py" in names and not any(name.endswith(("passwd", "id_rsa", ".txt")) or name.startswith("<") for name in names)
    assert all("text" not in file and "lines" not in file for file in files)


def test_a_file_has_its_text_and_the_samples_of_its_lines(place):
    app = text_of(place, "app.py")
    assert (app["text"], app["why"]) == (APP, "")
    assert {row[0]: row[1:3] for row in app["lines"]} == {5: [10, 10], 6: [30, 30], 9: [0, 40]}


def test_a_file_that_is_newer_than_the_recording_is_marked(place):
    assert text_of(place, "app.py")["newer"] is True and text_of(place, "old.py")["newer"] is False


def test_text_that_is_not_utf8_is_repaired_and_an_empty_file_is_a_text(place):
    assert text_of(place, "latin.py")["text"] == "# caf\ufffd \ufffd\ufffd\nx = 1\r\ny = 2\n"
    assert text_of(place, "empty.py")["text"] == ""


def test_a_relative_name_is_looked_for_where_the_program_was_started(place):
    assert place.get("/api/source", file="relative.py")["text"] == "z = 1\n"
    assert place.get("/api/source", file=f"../{os.path.basename(place.work)}/app.py")["text"] == APP


@pytest.mark.parametrize("name, why", [
    ("link.py", "a symbolic link"), ("loop.py", "a symbolic link"), ("null.py", "a symbolic link"), ("huge.py", "larger than 2 MB"),
    ("zero.py", "not a text file"), ("folder.py", "not a regular file"), ("fifo.py", "not a regular file"), ("locked.py", ""),
    ("gone.py", "not on this machine")])
def test_what_is_no_plain_file_is_not_read_and_says_why(place, name, why):
    file = text_of(place, name)
    assert file["text"] is None and why in file["why"] and file["why"] and SECRET not in str(file)
    assert [row[0] for row in file["lines"]] == [1], "what was recorded is still there"


@pytest.mark.parametrize("name", [
    "/etc/passwd", "../secret.txt", "../../../../etc/passwd", "secret.txt", "id_rsa", "target.py", "app.py", "/proc/self/environ",
    "{work}/secret.txt", "{work}/id_rsa", "{work}/target.py", "{work}/../{name}/app.py", "{work}//app.py", "{work}/app.py/",
    "{work}/app.py\n", "<frozen runpy>", "x" * 5000, "'; DROP TABLE x"])
def test_a_name_that_the_recording_does_not_have_is_not_found(place, name):
    answer = place.ask("/api/source", file=name.format(work=place.work, name=os.path.basename(place.work)))
    assert answer.status == 404 and answer.json()["error"] and SECRET.encode() not in answer.body


def test_a_nul_in_the_name_does_not_cut_it(place):
    answer = place.ask(f"/api/source?file={place.work}/app.py%00.txt")
    assert SECRET.encode() not in answer.body and answer.status in (200, 400, 404)


def test_another_method_and_another_target_are_refused(place):
    assert place.ask("/api/source", {"file": f"{place.work}/app.py"}).status == 405
    assert place.ask("/api/source", target="nobody").status == 404


def test_the_report_of_a_server_can_leave_the_source_out(place):
    with_text = place.ask("/api/report", format="html").body
    assert b"total += i" in with_text and b"\\u003c/script>\\u003cimg src=x" in with_text
    assert b"total += i" not in place.ask("/api/report", format="html", source=0).body
