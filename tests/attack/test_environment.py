"""The environment of another user does not steer a program that runs with more rights: a setuid copy, run by a user without them.
Needs root, to make the copy and to become the other user."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTHER = "54321"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a setuid program and runs it as another user")


@pytest.fixture
def place():
    """A folder that all users can enter, with libkymo and a program that has no search path of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            pytest.skip("/tmp is mounted nosuid")
        library = next(path for path in (ROOT / "build").glob("libkymo.so.0.*") if path.is_file())
        shutil.copy(library, folder / "libkymo.so.0")
        (folder / "program.c").write_text('#include <kymo/kymo.h>\n#include <stdio.h>\n'
                                          'int main(void) { { KYMO_SCOPE("zone"); } const char *at = kymo_directory();\n'
                                          'printf("%s\\n", at ? at : ""); return 0; }\n')
        subprocess.run(["cc", "-O1", f"-I{ROOT}/include", "-o", folder / "program", folder / "program.c", folder / "libkymo.so.0",
                        f"-Wl,-rpath,{folder}"], check=True)
        theirs = folder / "theirs"
        theirs.mkdir(mode=0o700)
        os.chown(theirs, int(OTHER), int(OTHER))
        yield folder


def as_other(place, program, *words, **env):
    env = {"PATH": "/usr/bin:/bin", "KYMO_DIR": str(place / "theirs"), "XDG_STATE_HOME": str(place / "theirs"),
           "HOME": str(place / "theirs"), **env}
    return subprocess.run(["setpriv", "--reuid", OTHER, "--regid", OTHER, "--clear-groups", program, *words], env=env, cwd="/",
                          capture_output=True, text=True, check=False, timeout=60)


def setuid_copy(place, program):
    copy = pathlib.Path(shutil.copy(program, place / f"setuid-{program.name}"))
    os.chown(copy, 0, 0)
    copy.chmod(0o4755)
    return copy


def files(place):
    return set(place.rglob("*")) | set(pathlib.Path("/dev/shm").glob("kymo-0/*"))


def test_a_plain_program_records_where_its_user_wants(place):
    done = as_other(place, place / "program", KYMO="on")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(str(place / "theirs"))


def test_a_setuid_program_is_not_steered_by_the_environment_of_its_caller(place):
    copy = setuid_copy(place, place / "program")
    before = files(place)
    done = as_other(place, copy, KYMO="on", KYMO_RUN=str(place / "theirs/run"), KYMO_BUDGET="1G", KYMO_KEEP="all", KYMO_CLOCK="mono")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")  # KYMO=on has no effect
    assert files(place) == before


def test_a_kymo_with_more_rights_than_its_caller_loads_no_library_of_the_callers(place):
    """As after setcap: KYMO_DUCKDB names a library that kymo would load."""
    plain = pathlib.Path(shutil.copy(ROOT / "build/kymo", place / "kymo"))
    (place / "evil.c").write_text('#include <stdio.h>\n'
                                  '__attribute__((constructor)) static void run(void) { fputs("OWNED", stderr); }\n')
    subprocess.run(["cc", "-shared", "-fPIC", "-o", place / "evil.so", place / "evil.c"], check=True)
    for program, loaded in ((plain, True), (setuid_copy(place, plain), False)):
        done = as_other(place, program, "doctor", KYMO_DUCKDB=str(place / "evil.so"))
        assert ("OWNED" in done.stderr, "sql" in done.stdout) == (loaded, True), done.stdout + done.stderr
