"""A kernel that does not let us read: seccomp takes process_vm_readv from kymo, as containers do."""
import ctypes
import errno
import os
import platform
import struct
import subprocess
import sys

import pytest
from conftest import KYMO, clean

PROCESS_VM_READV = {"x86_64": 310, "aarch64": 270}.get(platform.machine())
pytestmark = pytest.mark.skipif(PROCESS_VM_READV is None, reason=f"no number of process_vm_readv for {platform.machine()}")


def without_process_vm_readv(error):
    """For preexec_fn: from now on that call fails with this error, in this process and its children."""
    load, equal, give = 0x20, 0x15, 0x06  # BPF_LD | W | ABS, BPF_JMP | JEQ | K, BPF_RET | K
    steps = [(load, 0, 0, 0), (equal, 0, 1, PROCESS_VM_READV), (give, 0, 0, 0x00050000 | error), (give, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    filter = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)

    def install():
        assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
        assert libc.prctl(22, 2, ctypes.c_char_p(filter)) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
        assert code  # lives until here
    return install


def kymo_without(error, *words, **more):
    return subprocess.run([KYMO, *map(str, words)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          env={**clean(os.environ), **more.pop("env", {})}, preexec_fn=without_process_vm_readv(error), **more)


WAIT = "import sys; print('ready', flush=True); sys.stdin.readline()"
SENTENCES = {
    errno.ENOSYS: "process_vm_readv is blocked by a seccomp filter; in a container, add --cap-add "
                  "SYS_PTRACE --security-opt seccomp=unconfined",
    errno.EPERM: "--cap-add SYS_PTRACE",
}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "live").mkdir(mode=0o700)
    return {"KYMO_DIR": str(tmp_path / "live"), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.mark.parametrize("error", SENTENCES, ids=errno.errorcode.get)
def test_backtrace_says_what_helps(start, error):
    if error == errno.EPERM and os.geteuid() != 0 and os.path.exists("/proc/sys/kernel/yama"):
        pytest.skip("the sentence is that of Yama here")
    done = kymo_without(error, "backtrace", start(sys.executable, WAIT).pid)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("kymo backtrace: ") and SENTENCES[error] in done.stderr
    assert done.stderr.count("\n") == 1


def test_attach_goes_on_with_metrics(start, place, tmp_path):
    program = start(sys.executable, WAIT)
    done = kymo_without(errno.ENOSYS, "attach", "--duration", "0.3", "-o", tmp_path / "seen", program.pid, env=place)
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == "kymo: recording metrics only, no Python stacks: " + SENTENCES[errno.ENOSYS]
    answer = subprocess.run([KYMO, "query", tmp_path / "seen", "-f", "csv", "SELECT count(*) > 0 FROM host.process"],
                            capture_output=True, text=True, env=clean(os.environ), check=True)
    assert answer.stdout.splitlines()[1] == "true"
    assert program.child.poll() is None


def test_a_run_is_the_same_without_its_samples(place, tmp_path):
    code = "import time; time.sleep(0.3); print('done'); raise SystemExit(7)"
    done = kymo_without(errno.ENOSYS, "run", "-q", "-o", tmp_path / "run", "--", sys.executable, "-c", code, env=place)
    assert (done.returncode, done.stdout) == (7, "done\n")
