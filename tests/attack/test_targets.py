"""Programs that would hold whoever reads them: lists that lead back to themselves, pipes in the place of libraries, absurd
symbol tables, offsets into nowhere. Each gets an answer, with what was found and a sentence."""
import contextlib
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
PYTHON = ROOT / ".venv/bin/python"
sys.path.append(str(ROOT / "tests"))
import running  # noqa: E402

SECONDS = 25  # the limit is 5; a busy machine is slow


def kymo(*words, **more):
    """An answer comes in time, and kymo does not die."""
    began = time.monotonic()
    done = subprocess.run([KYMO, *map(str, words)], capture_output=True, text=True, timeout=60, check=False,
                          stdin=subprocess.DEVNULL, **more)
    assert time.monotonic() - began < SECONDS
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    return done


@contextlib.contextmanager
def target(*words, first="ready", **more):
    with running.program([*words], **more) as program:
        assert program.first_line == first
        yield program


# ---- memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [(), ("--why", "--locals"), ("--native",), ("--json",)])
@pytest.mark.parametrize("word", ["cyclic-threads", "cyclic-interpreters", "cyclic-frames", "cyclic-chunks"])
def test_lists_that_lead_back_to_themselves_end(word, options):
    with target(PROGS / "hostile_python", word) as program:
        done = kymo("backtrace", *options, program.pid)
        assert done.returncode == 0
        if word in ("cyclic-threads", "cyclic-interpreters"):
            assert "not all Python threads are shown: their list is damaged or too long" in done.stdout + done.stderr


def test_a_python_whose_threads_form_a_cycle_is_shown_with_its_frames():
    """A real interpreter that has damaged its own list; 3.11 and later keep `next` in the second word."""
    damage = """if True:
        import ctypes, sys
        state = ctypes.pythonapi.PyThreadState_Get
        state.restype = ctypes.c_void_p
        ctypes.c_uint64.from_address(state() + 8).value = state()
        print("ready", flush=True)
        def wait_here(): sys.stdin.read()
        wait_here()
        ctypes.c_uint64.from_address(state() + 8).value = 0"""
    with target(PYTHON, "-c", damage) as program:
        done = kymo("backtrace", program.pid)
        assert "wait_here" in done.stdout
        assert "their list is damaged" in done.stdout


def test_what_takes_longer_than_the_deadline_ends_with_a_sentence():
    with target(PROGS / "hostile_python", "long-frames") as program:
        done = kymo("backtrace", program.pid)
        assert f"pid {program.pid}" in done.stdout
        assert "reading process" in done.stdout and "took longer than 5 s" in done.stdout
        tree = kymo("backtrace", "--tree", "--json", program.pid)
        assert json.loads(tree.stdout) is not None and "took longer than 5 s" in tree.stderr


def test_offsets_beyond_what_is_copied_are_refused():
    """They were lengths of reads into buffers of fixed size."""
    with target(PROGS / "hostile_python", "wide-frames") as program:
        done = kymo("backtrace", program.pid)
        assert "has another layout than 3.13" in done.stdout


def test_a_run_of_a_damaged_python_is_recorded_to_its_end(tmp_path):
    env = {**os.environ, "KYMO_DIR": str(tmp_path / "live"), "XDG_STATE_HOME": str(tmp_path / "state"), "KYMO_QUIET": "1"}
    (tmp_path / "live").mkdir(mode=0o700)
    for word in ("cyclic-threads", "cyclic-chunks"):
        done = subprocess.run([KYMO, "run", "-o", tmp_path / word, "--", PROGS / "hostile_python", word], input="", env=env,
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr


# ---- files -------------------------------------------------------------------------------------


def test_a_pipe_in_the_place_of_a_library_is_not_opened(tmp_path):
    """The kernel adds " (deleted)" to the name of a file that is gone, and the program makes a pipe of that name."""
    path = tmp_path / "program"
    shutil.copy(PROGS / "hostile_files", path)
    env = {**os.environ, "LD_LIBRARY_PATH": str(PROGS.parent.parent)}
    with target(path, env=env) as program:
        path.unlink()
        os.mkfifo(f"{path} (deleted)")
        done = kymo("backtrace", "--native", program.pid)
        assert done.returncode == 0 and "read" in done.stdout


def elf(path, tables, symbols):
    """An ELF file whose `tables` symbol tables are all the same bytes, with names that begin like the one that is sought."""
    text = b"_PyRuntimeX\0" * 1024
    at = 64 + len(text) + (-len(text)) % 8
    sections_at = at + 24 * symbols
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, sections_at, 0, 64, 56, 0, 64,
                                                          tables + 2, 1)
    names = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(text), 0, 0, 1, 0)
    table = struct.pack("<IIQQQQIIQQ", 0, 11, 0, 0, at, 24 * symbols, 1, 0, 8, 24)
    symbol = struct.pack("<IBBHQQ", 12, 0x11, 0, 7, 0x1000, 8)
    with open(path, "wb") as file:
        file.write(head + text.ljust(at - 64, b"\0") + symbol * symbols + bytes(64) + names + table * tables)


@pytest.mark.parametrize("tables, symbols", [(60000, 200000), (2, 4000000)])
def test_symbol_tables_without_number_are_searched_for_a_moment_only(tmp_path, tables, symbols):
    path = tmp_path / "libpython3.11.so"
    elf(path, tables, symbols)
    with target(PROGS / "hostile_files", path) as program:
        done = kymo("backtrace", program.pid)
        assert "no Python frames" in done.stdout


def test_a_library_that_shrinks_while_it_is_searched_does_not_end_kymo(tmp_path):
    path = tmp_path / "libpython3.11.so"
    elf(path, 1, 400000)
    whole = path.read_bytes()
    with target(PROGS / "hostile_files", path) as program:
        asking = [subprocess.Popen([KYMO, "backtrace", str(program.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   stdin=subprocess.DEVNULL) for _ in range(8)]
        while any(child.poll() is None for child in asking):
            os.truncate(path, 4096)
            path.write_bytes(whole)
        assert [child.returncode for child in asking] == [0] * 8
