"""The wheels of build/wheel/dist on a bare Debian: no compiler, no npm, no network, none of the libraries that kymo loads.

`make wheel-test` runs this as root: it makes a chroot with debootstrap, once, in build/bare/root.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIST = ROOT / "build/wheel/dist"
BARE = ROOT / "build/bare/root"
FIRST_REPORT_CPU_SECONDS = 60
MOST_BYTES_BESIDE_DUCKDB = 8_000_000  # compressed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a chroot needs root")

PROGRAM = """
import time
def work():
    return sum(range(300000))
for _ in range(40):
    work()
print("ran")
"""


def wheels():
    found = sorted(DIST.glob("kymo-*.whl"))
    assert found, "no wheels: make wheel"
    return found


def mirror():
    """Where this machine gets its packages; debootstrap knows one, too."""
    files = [pathlib.Path("/etc/apt/sources.list"), *pathlib.Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(file.read_text() for file in files if file.is_file())
    found = re.findall(r"^(?:URIs:|deb(?: \[[^]]*\])?) +(http\S+)", text, re.M)
    return [address for address in found if "security" not in address][:1]


@pytest.fixture(scope="session")
def bare():
    if not (BARE / "usr/bin/python3").exists():
        if not shutil.which("debootstrap"):
            pytest.skip("no debootstrap: apt-get install debootstrap")
        shutil.rmtree(BARE, ignore_errors=True)
        BARE.mkdir(parents=True)
        subprocess.run(["debootstrap", "--variant=minbase", "--include=python3-venv", "bookworm", BARE, *mirror()],
                       check=True, stdout=subprocess.DEVNULL, timeout=1200)
    shutil.rmtree(BARE / "wheels", ignore_errors=True)
    (BARE / "wheels").mkdir()
    for wheel in DIST.glob("*.whl"):
        shutil.copy(wheel, BARE / "wheels")
    (BARE / "program.py").write_text(PROGRAM)
    return BARE


# A network, a mount and a process namespace of its own: what the script leaves behind ends with it.
ENTER = """
mount -t proc proc "$0/proc"
mkdir -p "$0/dev/shm"
mount -t tmpfs shm "$0/dev/shm"
exec chroot "$0" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 /bin/bash -eu -c "$1"
"""


def inside(root, script, seconds=300):
    """Runs a script in the chroot; its output."""
    done = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "bash", "-eu", "-c", ENTER, root, script],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=seconds, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


INSTALL = """rm -rf /venv
python3 -m venv /venv
/venv/bin/pip install -q --no-index --find-links /wheels kymo
"""


@pytest.fixture(scope="session")
def installed(bare):
    inside(bare, INSTALL)
    return bare


def test_it_is_bare(bare):
    assert inside(bare, "for word in cc gcc npm node meson; do ! command -v $word; done") == ""
    libraries = inside(bare, "ldconfig -p")
    for name in ("libdw.so.1", "libmicrohttpd.so", "libduckdb.so", "libOpenCL.so"):
        assert name not in libraries


def test_from_nothing_to_the_first_report(bare):
    """The figure is an elapsed time of at most 60 s; CPU time is what a busy machine cannot change."""
    before, start = os.times(), time.monotonic()
    out = inside(bare, INSTALL + "cd /tmp; /venv/bin/kymo run -- python3 /program.py; /venv/bin/kymo report latest")
    used, after = time.monotonic() - start, os.times()
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    print(f"\ninstalled and reported: {used:.1f} s elapsed, {cpu:.1f} s of CPU time")
    assert out.startswith("ran\n") and "work" in out and "exit 0" in out
    assert cpu < FIRST_REPORT_CPU_SECONDS


def test_doctor_finds_what_the_wheel_brings(installed):
    found = {row["name"]: row for row in json.loads(inside(installed, "/venv/bin/kymo doctor --format json || true"))}
    states = {name: found[name]["state"] for name in
              ("sql", "python", "native", "viewer", "itt", "nvtx", "vaccel", "tracy")}
    assert states == dict.fromkeys(states, "works")


def test_native_frames_are_read(installed):
    out = inside(installed, """cd /tmp
/venv/bin/kymo run -- python3 -c 'import time; time.sleep(60)' >/dev/null 2>&1 &
for _ in $(seq 100); do
    sleep 0.2
    /venv/bin/kymo backtrace --native latest >/tmp/out 2>/dev/null || continue
    ! grep -q _start /tmp/out || break
done
cat /tmp/out
""")
    assert "nanosleep" in out and "_start" in out


def test_the_viewer_answers(installed):
    out = inside(installed, """ip link set lo up 2>/dev/null || python3 - <<'END'
import fcntl, socket, struct
name = struct.pack("16sh14x", b"lo", 0x41)  # IFF_UP | IFF_RUNNING
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, name)
END
cd /tmp
/venv/bin/kymo run -o served -- python3 /program.py >/dev/null 2>&1
/venv/bin/kymo serve served >/tmp/said 2>&1 &
for _ in $(seq 100); do sleep 0.1; grep -q http /tmp/said && break; done
python3 -c "import re, urllib.request
url = re.search(r'http://\\S+', open('/tmp/said').read()).group()
print(urllib.request.urlopen(url, timeout=20).status)"
""")
    assert out == "200\n"


def test_a_c_program_finds_headers_and_library(installed, tmp_path):
    """Compiled here, against the files of the environment there."""
    (kymo,) = (installed / "venv/lib").glob("python3*/site-packages/kymo")
    (tmp_path / "app.c").write_text('#include <kymo/kymo.h>\nint main(void)\n{\n\tKYMO_SCOPE("from C");\n\treturn 0;\n}\n')
    env = {**os.environ, "PKG_CONFIG_PATH": str(kymo / "pkgconfig")}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "kymo"], env=env,
                           capture_output=True, text=True, check=True).stdout.split()
    flags = [flag.replace(str(installed), "") if "rpath" in flag else flag for flag in flags]
    subprocess.run(["cc", tmp_path / "app.c", "-o", installed / "app", *flags], check=True)
    out = inside(installed, "cd /tmp; /venv/bin/kymo run -o c -- /app 2>/dev/null; "
                            "/venv/bin/kymo query -f csv c 'SELECT name FROM trace.regions'")
    assert out == "name\nfrom C\n"


def test_compat_modules_are_a_wheel_of_their_own(installed):
    assert "no tracy" in inside(installed, "/venv/bin/python -c 'import tracy' 2>/dev/null || echo no tracy")
    inside(installed, "/venv/bin/pip install -q --no-index --find-links /wheels kymo-compat")
    assert inside(installed, "/venv/bin/python -c 'import kymo, tracy; print(tracy.Profiler is kymo.Profiler)'; "
                             "/venv/bin/pip uninstall -q -y kymo-compat") == "True\n"


# --- the files ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("wheel", wheels() if DIST.is_dir() else [], ids=lambda wheel: wheel.name.split("-")[2])
def test_a_wheel_is_complete_licensed_and_small(wheel):
    assert re.search(r"-manylinux_2_\d+_(x86_64|aarch64)\.whl$", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        files = {info.filename: info.compress_size for info in archive.infolist()}
    for name in ("libduckdb.so", "libkymo.so.0", "libdw.so.1", "libmicrohttpd.so.12", "libkymo_compat.so.0", "include/kymo/kymo.h",
                 "include/kymo-compat/tracy/Tracy.hpp", "pkgconfig/kymo.pc", "licenses/LICENSE",
                 "licenses/duckdb.txt"):
        assert f"kymo/{name}" in files
    grafted = [name for name in files if name.startswith("kymo.libs/")]
    licences = [name for name in files if name.startswith("kymo/licenses/debian-")]
    assert grafted and len(licences) >= len(grafted)
    assert sum(size for name, size in files.items() if "libduckdb" not in name) < MOST_BYTES_BESIDE_DUCKDB


def test_there_is_a_wheel_for_every_python_here():
    rows = subprocess.run([ROOT / "tools/pythons"], capture_output=True, text=True, check=True).stdout.splitlines()
    tags = {"cp" + "".join(row.split("\t")[1].split(".")[:2]) for row in rows}
    assert {wheel.name.split("-")[2] for wheel in wheels()} == tags


def test_each_wheel_imports_in_its_python(tmp_path):
    for row in subprocess.run([ROOT / "tools/pythons"], capture_output=True, text=True, check=True).stdout.splitlines():
        python, version = row.split("\t")[:2]
        tag = "cp" + "".join(version.split(".")[:2])
        (wheel,) = DIST.glob(f"kymo-*-{tag}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path / tag)
        done = subprocess.run([python, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path / tag)!r}); "
                               "import kymo, kymo._arrow, kymo._metrics, kymo._trace, kymo._memory; print(kymo.__version__)"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0 and done.stdout, done.stderr


