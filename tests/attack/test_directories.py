"""Root and the directories of other users: a link that is swapped in, a name that is taken, a second directory that is not ours.

Two users without an account: HIS makes traps, HERS is an ordinary user. What must not change is `outside`, whose times tell of
a file that was made and removed again, too.
"""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
import running

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
HIS, HERS = 54321, 54322

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv, to be two users")

# Exchanges two names as fast as it can, and moves a new directory away to put a link in its place.
SWAP = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
def exchange(a, b):
    return libc.renameat2(-100, a.encode(), -100, b.encode(), 2)
outside = sys.argv[1]
print("swapping", flush=True)
while True:
    for _ in range(50):
        exchange("d", "l")
    if exchange("rec", "trap"):
        continue
    exchange("rec", "trap")
"""


def user(uid, *words):
    return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *map(os.fspath, words)]


def tree(path):
    """All below a path, with the times of directories, which change with each file that comes or goes."""
    return {str(one.relative_to(path.parent)): (one.lstat().st_mode, one.lstat().st_size, one.lstat().st_mtime_ns, one.lstat().st_ino)
            for one in [path, *sorted(path.rglob("*"))]}


class Arena:
    """A place that everyone can enter: root's outside/ and live/, and his/, in which d is his and l a link to outside."""

    def __init__(self, path):
        self.path = path
        path.chmod(0o755)
        for name in ("outside", "outside/live", "outside/empty", "outside/given", "state", "mine", "hers", "his", "his/d",
                     "his/d/given"):
            (path / name).mkdir(mode=0o700 if name.endswith(("live", "state")) else 0o755)
        (path / "live").mkdir(mode=0o700)
        (path / "his/l").symlink_to(path / "outside")
        (path / "his/trap").symlink_to(path / "outside/empty")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("KYMO", "XDG")) or k == "KYMO_DUCKDB"}
        self.env.update(KYMO_DIR=str(path / "live"), XDG_STATE_HOME=str(path / "state"), HOME=str(path), TZ="UTC", LC_ALL="C.UTF-8")
        self.give("his", HIS)
        self.give("hers", HERS)

    def give(self, name, uid):
        for one in [self.path / name, *(self.path / name).rglob("*")]:
            os.chown(one, uid, uid, follow_symlinks=False)

    def __call__(self, *words, uid=0, cwd=None, env=None, timeout=60):
        command = [KYMO, *map(os.fspath, words)]
        return subprocess.run(user(uid, *command) if uid else command, env={**self.env, **(env or {})}, cwd=cwd or self.path,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout)

    def record(self, name):
        """A recording on disk, of a program with some zones."""
        done = self("run", "-q", "-o", self.path / name, "--", PROGS / "cli_fixture", "plain")
        assert done.returncode == 0, done.stderr
        return self.path / name

    @contextlib.contextmanager
    def swapping(self):
        command = user(HIS, sys.executable, "-c", SWAP, self.path / "outside")
        with subprocess.Popen(command, cwd=self.path / "his", stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "swapping\n"
            try:
                yield
            finally:
                process.kill()


@pytest.fixture
def arena():
    path = pathlib.Path(tempfile.mkdtemp(prefix="kymo-directories-"))
    yield Arena(path)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "600"])
    yield process.pid
    process.kill()
    process.wait()


# ---- root and a directory of another user ----------------------------------------------------------------------------

WRITES = {  # by a name: the words of the command that makes a file or directory in his
    "run": lambda a, pid: ("run", "-o", "his/d/rec", "--", "true"),
    "run into a directory that is there": lambda a, pid: ("run", "-o", "his/d/given", "--", "true"),
    "run with a name": lambda a, pid: ("run", "-o", "his/d", "--name", "x", "--", "true"),
    "run with a report": lambda a, pid: ("run", "--report", "-o", "his/d/rec", "--", PROGS / "cli_fixture", "plain"),
    "attach": lambda a, pid: ("attach", "-q", "--duration", "0.05", "-o", "his/d/rec", pid),
    "pack": lambda a, pid: ("pack", "mine/rec", "his/d/x.kymo", "--force"),
    "export": lambda a, pid: ("export", "mine/rec", "-f", "chrome", "-o", "his/d/x.json", "--force"),
    "export one table": lambda a, pid: (
        "export", "mine/rec", "--table", "trace.regions", "-f", "parquet", "-o", "his/d/x.parquet", "--force"),
    "export all tables": lambda a, pid: ("export", "mine/rec", "-f", "csv", "-o", "his/d/tables", "--force"),
    "report": lambda a, pid: ("report", "mine/rec", "his/d/x.html", "--force"),
    "query": lambda a, pid: ("query", "-f", "csv", "-o", "his/d/x.csv", "--force", "mine/rec", "FROM trace.regions"),
    "snapshot": lambda a, pid: ("snapshot", "mine/rec", "his/d/x.ksnap", "--force"),
    "rm": lambda a, pid: ("rm", "his/d/rec"),
    "rm a packed file": lambda a, pid: ("rm", "his/d/packed.kymo"),
}


def prepare(arena):
    """Recordings of root, of the same names outside and in his directory."""
    arena.record("mine/rec")
    for where in ("outside", "his/d"):
        shutil.copytree(arena.path / "mine/rec", arena.path / where / "rec")
        assert arena("pack", "mine/rec", arena.path / where / "packed.kymo").returncode == 0 or where == "his/d"
    if not (arena.path / "his/d/packed.kymo").exists():
        shutil.copy(arena.path / "outside/packed.kymo", arena.path / "his/d/packed.kymo")
    arena.give("his", HIS)


@pytest.mark.parametrize("name", WRITES)
def test_root_refuses_a_directory_of_another_user_and_names_it(arena, sleeper, name):
    if name.startswith(("pack", "export", "report", "query", "snapshot", "rm")):
        prepare(arena)
    before = tree(arena.path / "his"), tree(arena.path / "outside")
    done = arena(*map(str, WRITES[name](arena, sleeper)))
    # The program starts in any case; its recording goes elsewhere.
    assert done.returncode == (0 if name.startswith("run") else 1), done.stderr
    assert f"{arena.path}/his belongs to user {HIS}, who can replace what is in it by a link" in done.stderr
    assert name.startswith("run") or f"; use a directory of your own, or run kymo as user {HIS}" in done.stderr
    assert (tree(arena.path / "his"), tree(arena.path / "outside")) == before


def test_rm_of_all_dead_recordings_leaves_alone_what_another_user_has_put_there(arena):
    """The listing of the working directory is his: what it leads to is not removed."""
    prepare(arena)
    shutil.rmtree(arena.path / "mine/rec")
    before = tree(arena.path / "his"), tree(arena.path / "outside")
    done = arena("rm", "--all-dead", cwd=arena.path / "his/d")
    assert done.returncode == 0, done.stderr
    assert (tree(arena.path / "his"), tree(arena.path / "outside")) == before


ROUNDS = 25


@pytest.mark.parametrize("name", WRITES)
def test_a_link_that_is_swapped_in_leads_root_nowhere(arena, sleeper, name):
    if name.startswith(("pack", "export", "report", "query", "snapshot", "rm")):
        prepare(arena)
    before = tree(arena.path / "outside")
    with arena.swapping():
        for _ in range(ROUNDS):
            arena(*map(str, WRITES[name](arena, sleeper)))
            assert tree(arena.path / "outside") == before


@pytest.mark.parametrize("command", ["run", "attach"])
def test_a_recording_that_is_swapped_for_a_link_leads_root_nowhere(arena, sleeper, command):
    """The directory is made, exchanged for a link to an empty directory, and then opened."""
    words = {"run": ("run", "-q", "-o", "rec", "--", "true"),
             "attach": ("attach", "-q", "--duration", "0.02", "-o", "rec", str(sleeper))}[command]
    before = tree(arena.path / "outside")
    with arena.swapping():
        for _ in range(60):
            arena(*words, cwd=arena.path / "his")
            assert tree(arena.path / "outside") == before
            shutil.rmtree(arena.path / "his/rec", ignore_errors=True)


@pytest.mark.parametrize("variable", ["KYMO_DIR", "KYMO_RUN"])
def test_a_program_of_root_records_into_no_directory_of_another_user(arena, variable):
    """It runs as without kymo, and one line says why nothing is recorded."""
    (arena.path / "his/d/live").mkdir(mode=0o700)
    (arena.path / "outside/live").chmod(0o700)
    for where in ("straight", "swapped"):
        before = tree(arena.path / "outside")
        with arena.swapping() if where == "swapped" else contextlib.nullcontext():
            for _ in range(ROUNDS if where == "swapped" else 1):
                done = subprocess.run([PROGS / "run_rows", "1000"], capture_output=True, text=True, check=False, cwd=arena.path,
                                      env={**arena.env, "KYMO": "on", variable: str(arena.path / "his/d/live")})
                assert (done.returncode, done.stdout) == (0, "1000\n"), done.stderr
                assert done.stderr.startswith("kymo: ") and done.stderr.count("\n") == 1
                assert f"/his belongs to user {HIS}" in done.stderr
                assert tree(arena.path / "outside") == before


def test_the_index_of_recordings_is_not_kept_in_a_directory_of_another_user(arena):
    arena("run", "-q", "-o", "mine/rec", "--", "true", env={"XDG_STATE_HOME": str(arena.path / "his/d")})
    assert not (arena.path / "his/d/kymo").exists()


@pytest.mark.parametrize("command", ["run", "attach"])
def test_without_a_name_the_recording_of_root_goes_elsewhere_and_a_line_says_so(arena, sleeper, command):
    """Containers run as root in a directory of the user who started them: the program is not to fail for that."""
    words = {"run": ("run", "--no-summary", "--", "true"),
             "attach": ("attach", "--no-summary", "--duration", "0.05", str(sleeper))}[command]
    before = tree(arena.path / "his")
    done = arena(*words, cwd=arena.path / "his/d")
    assert done.returncode == 0, done.stderr
    assert tree(arena.path / "his") == before
    made = [one for one in (arena.path / "state/kymo").iterdir() if one.name.startswith("kymo-")]
    assert len(made) == 1 and (made[0] / "run").exists()
    assert done.stderr.splitlines()[0].startswith(f"kymo: the recording is {made[0]}: {arena.path}/his belongs to user {HIS}, ")
    assert arena("query", "latest", "-f", "csv", "SELECT 1 AS x").stdout == "x\n1\n"


@pytest.mark.parametrize("mode, gid, refused", [(0o775, HIS, True), (0o777, 0, True), (0o775, 0, False), (0o1777, 0, False),
                                                (0o755, HIS, False)])
def test_root_refuses_a_directory_in_which_others_can_rename(arena, mode, gid, refused):
    """Its own with a group of others; not one of root's group, and not one with the sticky bit, as /tmp."""
    os.chown(arena.path / "mine", 0, gid)
    (arena.path / "mine").chmod(mode)
    done = arena("run", "-o", "mine/rec", "--", "true")
    assert done.returncode == 0 and (arena.path / "mine/rec").exists() != refused, done.stderr
    assert (f"{arena.path}/mine is writable by other users (mode {mode:04o}, group {gid})" in done.stderr) == refused


def test_a_link_of_another_user_in_a_sticky_directory_is_not_followed(arena):
    """Also where the kernel's fs.protected_symlinks is off."""
    arena.record("mine/rec")
    (arena.path / "mine").chmod(0o1777)
    (arena.path / "mine/link").symlink_to(arena.path / "outside")
    (arena.path / "mine/own").symlink_to(arena.path / "outside")
    os.chown(arena.path / "mine/link", HIS, HIS, follow_symlinks=False)
    before = tree(arena.path / "outside")
    done = arena("report", "mine/rec", "mine/link/x.html")
    assert done.returncode == 1 and f"mine/link is a symbolic link of user {HIS}, which is not followed" in done.stderr
    assert tree(arena.path / "outside") == before
    done = arena("report", "mine/rec", "mine/own/x.html")
    assert done.returncode == 0 and (arena.path / "outside/x.html").exists(), done.stderr


# ---- ordinary use ----------------------------------------------------------------------------------------------------

def test_an_ordinary_user_records_exports_and_removes_in_directories_that_are_shared(arena):
    """A directory of a colleague that everyone may write to, and one with the sticky bit."""
    hers = arena.path / "hers"
    env = {"KYMO_DIR": str(hers / "live"), "XDG_STATE_HOME": str(hers / "state"), "HOME": str(hers)}
    (arena.path / "his").chmod(0o777)
    for where in ("his", "hers", tempfile.mkdtemp(dir=arena.path)):
        place = arena.path / where
        if place.stat().st_uid == 0:
            place.chmod(0o1777)
        for words in (("run", "-q", "-o", place / "r", "--", "true"), ("export", place / "r", "-f", "csv", "-o", place / "t"),
                      ("report", place / "r", place / "r.html"), ("pack", place / "r", place / "r.kymo"),
                      ("snapshot", place / "r", place / "r.ksnap"), ("rm", place / "r", place / "r.kymo", place / "r.ksnap")):
            done = arena(*words, uid=HERS, env=env)
            assert done.returncode == 0, done.stderr
        assert (place / "r.html").stat().st_uid == HERS and not (place / "r").exists()


def test_an_ordinary_user_follows_no_link_of_another_in_a_shared_directory(arena):
    (arena.path / "his").chmod(0o777)
    (arena.path / "his/to-hers").symlink_to(arena.path / "hers")
    os.chown(arena.path / "his/to-hers", HIS, HIS, follow_symlinks=False)
    env = {"KYMO_DIR": str(arena.path / "hers/live"), "XDG_STATE_HOME": str(arena.path / "hers/state")}
    done = arena("run", "-o", "his/to-hers/r", "--", "true", uid=HERS, env=env)
    assert done.returncode == 0 and f"his/to-hers is a symbolic link of user {HIS}, which is not followed" in done.stderr
    assert not (arena.path / "hers/r").exists()


def test_in_a_user_namespace_the_owners_outside_of_it_are_no_strangers(arena):
    """There / belongs to user 65534, as everything of the machine's root."""
    env = {"KYMO_DIR": str(arena.path / "hers/live"), "XDG_STATE_HOME": str(arena.path / "hers/state")}
    words = user(HERS, "unshare", "-r")
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("users may not make namespaces here")
    done = subprocess.run([*words, KYMO, "run", "-q", "-o", arena.path / "hers/r", "--", "true"], env={**arena.env, **env},
                          cwd=arena.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (arena.path / "hers/r/run").exists()


# ---- the second directory of a recording -----------------------------------------------------------------------------

PEER = 1024  # bytes of a path in the file `run`


def set_peer(run, old, new):
    data = run.read_bytes()
    assert data.count(os.fsencode(old)) == 1
    at = data.index(os.fsencode(old))
    run.write_bytes(data[:at] + os.fsencode(new).ljust(PEER, b"\0") + data[at + PEER:])


def killed_recording(arena, name):
    """A run whose collector was killed: it has two directories, and each names the other."""
    process = subprocess.Popen([KYMO, "run", "-q", "-o", arena.path / name, "--", "sleep", "600"], env=arena.env, cwd=arena.path,
                               start_new_session=True)
    live = running.until(lambda: [one for one in (arena.path / "live").iterdir() if (one / "run").exists()
                                  and any(one.glob("p*/control"))])[0]
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return arena.path / name, live


@pytest.mark.parametrize("named", ["disk", "live"])
def test_rm_removes_both_directories_of_a_run_and_prints_both(arena, named):
    disk, live = killed_recording(arena, "mine/rec")
    first, second = (disk, live) if named == "disk" else (live, disk)
    done = arena("rm", first)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(f"kymo: removed {first} and {second}, ")
    assert not disk.exists() and not live.exists()


@pytest.mark.parametrize("named", ["disk", "live"])
def test_rm_keeps_a_second_directory_that_does_not_point_back(arena, named):
    """A copy of a recording names the directory in memory of the original, which is not the copy's."""
    disk, live = killed_recording(arena, "mine/rec")
    if named == "disk":
        first = arena.path / "mine/copy"
        shutil.copytree(disk, first)
        kept = live
    else:
        first, kept = live, disk
        set_peer(disk / "run", live, arena.path / "mine")
    before = tree(kept)
    done = arena("rm", first)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0].startswith(f"kymo: removed {first}, ")
    assert done.stderr.splitlines()[1] == (f"kymo: kept {kept}: it does not name {first} as its other directory; "
                                           "kymo rm removes it by its path")
    assert tree(kept) == before and not first.exists()


def test_rm_as_root_removes_no_directory_of_another_user_that_a_recording_names(arena):
    """His recording points back to root's, which has copied it from him."""
    disk, live = killed_recording(arena, "mine/rec")
    shutil.move(live, arena.path / "his/live")
    set_peer(disk / "run", live, arena.path / "his/live")
    arena.give("his", HIS)
    done = arena("rm", disk)
    assert done.returncode == 1
    assert f"cannot remove {arena.path}/his/live: {arena.path}/his belongs to user {HIS}" in done.stderr
    assert (arena.path / "his/live/run").exists()


# ---- a name that another user has taken ------------------------------------------------------------------------------

def can_mount(way):
    words = [*way, "mount", "-t", "tmpfs", "tmpfs", "/dev/shm"]
    return shutil.which("unshare") and subprocess.run(words, capture_output=True, check=False).returncode == 0


UNSHARE = next((way for way in (["unshare", "-m"], ["unshare", "-m", "--propagation", "unchanged"]) if can_mount(way)), None)
needs_mount = pytest.mark.skipif(not UNSHARE, reason="needs a /dev/shm of its own (unshare -m, mount)")


def squatted(arena, script, runtime=None):
    """Runs a script as HERS, where HIS has made /dev/shm/kymo-HERS; the words kymo and progs are set."""
    env = {k: v for k, v in arena.env.items() if k != "KYMO_DIR"}
    env.update(XDG_STATE_HOME=str(arena.path / "hers/state"), HOME=str(arena.path / "hers"), kymo=str(KYMO), progs=str(PROGS))
    if runtime:
        runtime.mkdir(mode=0o700)
        os.chown(runtime, HERS, HERS)
        env["XDG_RUNTIME_DIR"] = str(runtime)
    hers = arena.path / "hers/script"
    hers.write_text(script)
    outer = (f"mount -t tmpfs -o size=512m,mode=1777 tmpfs /dev/shm && setpriv --reuid {HIS} --regid {HIS} --clear-groups "
             f"mkdir -m 755 /dev/shm/kymo-{HERS} /dev/shm/kymo-{HERS}-aaaaaa || exit 9; "
             f"(for i in $(seq 600); do [ -e free ] && rmdir /dev/shm/kymo-{HERS} && exit; sleep 0.05; done) >/dev/null 2>&1 & "
             f"exec setpriv --reuid {HERS} --regid {HERS} --clear-groups sh -e {hers}")
    done = subprocess.run([*UNSHARE, "sh", "-c", outer], env=env, cwd=arena.path / "hers", capture_output=True, text=True, check=False,
                          timeout=120)
    assert done.returncode == 0, done.stderr + done.stdout
    return done


LIVE_AND_FOUND = """
mkfifo hold
sleep 600 > hold &
holder=$!
$kymo run --no-summary -o r -- $progs/probe_loop < hold > /dev/null &
supervisor=$!
for i in $(seq 300); do
    pid=$(pgrep -P $supervisor probe_loop || true)
    [ "$pid" ] && $kymo config $pid > settings 2>/dev/null && break
    sleep 0.1
done
$kymo ls
$kymo config $pid zones=off
$kymo attach $pid || true
$kymo query latest -f csv "SELECT 'latest' AS answer"
cat /proc/$pid/environ | tr '\\0' '\\n' | grep ^KYMO_RUN=
kill $holder
wait $supervisor || true
"""


@needs_mount
@pytest.mark.parametrize("where", ["runtime", "private"])
def test_a_name_that_another_user_has_taken_does_not_stop_a_run(arena, where):
    """It goes to XDG_RUNTIME_DIR, else to a name that cannot be guessed; a line says so, and every reader finds it."""
    runtime = arena.path / "hers/runtime" if where == "runtime" else None
    done = squatted(arena, LIVE_AND_FOUND, runtime)
    place = f"{runtime}/kymo/" if runtime else f"/dev/shm/kymo-{HERS}-"
    said = [line for line in done.stderr.splitlines() if "belongs to another user" in line]
    assert len(said) == 1 and said[0].startswith(f"kymo: /dev/shm/kymo-{HERS} belongs to another user; rows are written to {place}")
    assert f"/dev/shm/kymo-{HERS}-aaaaaa/" not in said[0]
    assert "probe_loop" in done.stdout and "zones=off (was on)" in done.stdout
    assert "is already recorded by kymo" in done.stderr
    assert "latest" in done.stdout.splitlines()
    assert f"KYMO_RUN={place}" in done.stdout
    assert (arena.path / "hers/r/run").exists()


@needs_mount
def test_programs_that_record_by_themselves_share_one_private_directory(arena):
    """KYMO=on, without a collector: the output of the program stays as it is, and kymo ls lists both."""
    done = squatted(arena, "KYMO=on $progs/run_rows 1000; KYMO=on $progs/run_rows 1000; ls -d /dev/shm/kymo-*; $kymo ls -f json; "
                           "$kymo doctor -f json || true")
    assert done.stdout.startswith("1000\n1000\n")
    private = [line for line in done.stdout.splitlines() if line.startswith(f"/dev/shm/kymo-{HERS}-") and not line.endswith("aaaaaa")]
    assert len(private) == 1
    assert done.stdout.count(f'"{private[0]}/run_rows-') == 2, done.stdout
    assert "another user has made" in done.stdout


@needs_mount
def test_recordings_of_a_private_directory_are_found_after_the_name_is_free_again(arena):
    done = squatted(arena, f"""
KYMO=on $progs/run_rows 1000
touch free
while [ -e /dev/shm/kymo-{HERS} ]; do sleep 0.05; done
KYMO=on $progs/run_rows 1000
$kymo ls -f json
$kymo rm --dead
""")
    assert f'"/dev/shm/kymo-{HERS}/run_rows-' in done.stdout and f'"/dev/shm/kymo-{HERS}-' in done.stdout, done.stdout
    assert "kymo: removed 2 recordings, " in done.stderr
