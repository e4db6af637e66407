"""Tab in real shells, with recordings whose names are shell syntax: the completed word means the recording, and nothing runs."""
import contextlib
import os
import pty
import select
import shutil
import subprocess
import time

import pytest
from conftest import KYMO

# Each is completed from its first three characters.
NAMES = {
    "zz0$(touch PWNED)": "a command substitution", "zz1`touch PWNED`": "backticks", "zz2 two  words": "spaces",
    "zz3'single": "a quote", 'zz4"double': "quotes", "zz5\nline\ttab": "lines", "zz6*?[a-z]{x,y}": "globs and braces",
    "zz7;touch PWNED;#": "a separator", "zz8&&touch PWNED|cat<a>b": "lists and pipes", "zz9\\$HOME~!!%": "expansions",
    "zza\x1b]0;title\x07\x9b31m\u202e": "controls", "zzb:colon=equals,comma@at": "word breaks", "zzc\u00e9\u4e16\u754c": "letters",
    "zzd--dead -rf": "options", "zze$'\\n'": "what quoting looks like",
}
# The same recordings, typed inside of quotes, and behind characters at which bash begins a word.
TYPED_IN_BASH = [
    ("'zz0", "zz0"), ('"zz0', "zz0"), ("$'zz0", "zz0"), ("zz0\\$", "zz0"), ("'zz3", "zz3"), ('"zz4', "zz4"), ("'zz5", "zz5"),
    ('"zz9', "zz9"), ("'zz9", "zz9"), ("zzb:", "zzb"), ("zzb:colon=e", "zzb"), ('"zzb:c', "zzb"), ("zz\"e\"\\$", "zze"),
]


class Place:
    """A home with these recordings, and a `kymo` that keeps its arguments instead of running."""

    def __init__(self, home):
        self.home, self.work = home, home / "work"
        for name in ("live", "work", "bin", "records"):
            (home / name).mkdir(mode=0o700)
        self.env = {"PATH": f"{home}/bin:{os.environ['PATH']}", "HOME": str(home), "KYMO_DIR": str(home / "live"), "TERM": "xterm",
                    "XDG_STATE_HOME": str(home / "state"), "LC_ALL": "C.UTF-8", "KYMO_QUIET": "1"}
        kept = home / "kept"
        (home / "bin/kymo").write_text(f"#!/bin/sh\n[ \"$1\" != completion ] || exec '{KYMO}' \"$@\"\n"
                                       f"printf '%s\\0' \"$@\" > '{kept}.new'\nmv '{kept}.new' '{kept}'\n")
        (home / "bin/kymo").chmod(0o755)

    def record(self, name):
        """A recording with any name: kymo run would refuse or not list some of them, another program need not."""
        raw = name.encode()
        placeholder = b"zz" + b"Q" * (len(raw) - 2)
        folder = self.home / "records" / str(len(list((self.home / "records").iterdir())))
        subprocess.run([KYMO, "run", "-n", placeholder, "-o", folder, "--", "true"], env=self.env, check=True, capture_output=True)
        for file in folder.rglob("*"):
            if file.is_file() and placeholder in file.read_bytes():
                file.write_bytes(file.read_bytes().replace(placeholder, raw))

    def kept(self):
        """The arguments of the last kymo, once."""
        path = self.home / "kept"
        if not path.exists():
            return None
        words = path.read_bytes().split(b"\0")[:-1]
        path.unlink()
        return [word.decode() for word in words]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("completion"))
    for name in NAMES:
        place.record(name)
    return place


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(kymo completion bash)"; : > {home}/ready\n'),
    "zsh": (["zsh", "-f", "-i"],
            "autoload -U compinit; compinit -u -D; source <(kymo completion zsh); setopt no_beep; : > {home}/ready\n"),
    "fish": (["fish", "--no-config", "-i"], "kymo completion fish | source; true > {home}/ready\n"),
}


class Shell:
    """A shell on a terminal. What it prints is read and kept, so that it never waits."""

    def __init__(self, name, place):
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed")
        command, load = SHELLS[name]
        self.place, self.seen = place, b""
        with contextlib.suppress(FileNotFoundError):
            (place.home / "ready").unlink()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(place.work)
            os.execvpe(command[0], command, place.env)
        self.type(load.format(home=place.home))
        self.wait(lambda: (place.home / "ready").exists())

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, what, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            got = what()
            if got:
                return got
            if select.select([self.fd], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    self.seen += os.read(self.fd, 65536)
        raise AssertionError(self.seen.decode(errors="backslashreplace"))

    def complete(self, typed):
        """What kymo is called with after Tab and Enter."""
        self.type(f"kymo query {typed}\t\n")
        return self.wait(self.place.kept)

    def close(self):
        os.close(self.fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


@pytest.fixture
def shell(place):
    """shell(name): a shell that has loaded its script."""
    shells = []

    def start(name):
        shells.append(Shell(name, place))
        return shells[-1]
    yield start
    for one in shells:
        one.close()


@pytest.mark.parametrize("name", SHELLS)
def test_a_completed_name_means_its_recording_and_runs_nothing(place, shell, name):
    one = shell(name)
    # A tab ends the word in a list of fish: such a name is not offered.
    names = [name_ for name_ in NAMES if name != "fish" or "\t" not in name_]
    assert [one.complete(recording[:3]) for recording in names] == [["query", recording] for recording in names]
    assert list(place.work.iterdir()) == []


@pytest.mark.parametrize("typed, begins", TYPED_IN_BASH)
def test_bash_continues_the_quotes_that_are_typed(place, shell, typed, begins):
    recording = next(name for name in NAMES if name.startswith(begins))
    assert shell("bash").complete(typed) == ["query", recording]
    assert list(place.work.iterdir()) == []


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("typed, means", [
    ("latest \"FROM trace.mar", "FROM trace.marks"), ("latest 'SELECT 1 FROM trace.st", "SELECT 1 FROM trace.steps"),
    ("-f csv latest \"FROM trace.steps SELECT dur", "FROM trace.steps SELECT duration_ns"),
    ("latest \"FROM trace.steps s SELECT s.dur", "FROM trace.steps s SELECT s.duration_ns")])
def test_sql_is_completed_by_tables_and_columns(place, shell, name, typed, means):
    assert shell(name).complete(typed)[-1].rstrip() == means


def test_sql_offers_tables_of_the_program_and_columns_of_named_tables(kymo):
    path = kymo.record()

    def offered(sql, *words):
        return [line.split("\t")[0] for line in kymo("completion", "fish", "--", "query", *words, f'"{sql}').out.split("\0") if line]
    assert offered("FROM app", path) == ["FROM app.requests"]
    assert offered("from APP", path) == ["from app.requests"]
    assert offered("FROM app.requests SELECT pa", path) == ["FROM app.requests SELECT path"]
    assert offered("SELECT pa", path) == []  # no table is named
    assert offered("FROM trace.steps, trace.zones SELECT dur", path) == ["FROM trace.steps, trace.zones SELECT duration_ns"]
    assert offered("FROM host.", path) and all(word.startswith("FROM host.") for word in offered("FROM host.", path))
    assert offered("FROM trace.ste") == ["FROM trace.steps"]  # the only word: the target is latest
    assert offered("FROM trace.ste", "/nonexistent") == ["FROM trace.steps"]
    assert offered("x", path, "SELECT 1") == []
    assert "latest" in [line.split("\t")[0] for line in kymo("completion", "fish", "--", "query", "").out.split("\0")]


def ask(place, *words):
    return subprocess.run([KYMO, "completion", *words], env=place.env, capture_output=True, check=True, cwd=place.work).stdout


def test_no_word_and_no_description_holds_a_control_character(place):
    for words in (["bash", "--", "kymo query ", ""], ["zsh", "--", "query", ""], ["--", "query", ""]):
        text = ask(place, *words).decode()
        assert len(text.splitlines()) > 5
        assert [c for c in text.replace("\n", "").replace("\t", "") if ord(c) < 32 or 0x7f <= ord(c) < 0xa0 or c == "\u202e"] == []


def test_scripts_of_older_versions_get_names_that_need_no_quotes(place):
    offered = [line.split("\t")[0] for line in ask(place, "--", "query", "zz").decode().splitlines()]
    assert offered == ["zzb:colon=equals,comma@at"]


def test_a_name_that_begins_with_a_dash_is_offered_by_its_path_only(tmp_path):
    place = Place(tmp_path)
    place.record("zz-dead")
    folder = next((tmp_path / "records/0").iterdir())
    for file in folder.rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes().replace(b"zz-dead", b"--dead\0"))
    assert ask(place, "bash", "--", "kymo rm ", "").decode().splitlines() == ["latest", str(folder)]
