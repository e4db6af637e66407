"""What the tests of `kymo run` share: how to start it, and a reader of recordings of their own, so that counts are not
checked with the code that is being tested."""
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("KYMO_TEST_BUILD", ROOT / "build"))
KYMO = str(BUILD / "kymo")
PROGS = BUILD / "tests/progs"

LIVE = 4096  # offsets of src/base/format.h
HEAD, SEGMENT_FIRST, DROPPED = LIVE, LIVE + 128, LIVE + 192


def prog(name):
    return str(PROGS / name)


class Place:
    """A working directory and a KYMO_DIR of its own."""

    def __init__(self, live_root=None):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="kymo-run-test-"))
        shm = live_root or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.live = pathlib.Path(tempfile.mkdtemp(prefix="kymo-run-test-", dir=shm))
        self.env = {**{k: v for k, v in os.environ.items() if not k.startswith("KYMO")},
                    "KYMO_DIR": str(self.live / "live"), "XDG_STATE_HOME": str(self.path / "state")}

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.rmtree(self.live, ignore_errors=True)

    def popen(self, *words, env=None, **options):
        return subprocess.Popen([KYMO, "run", *words], cwd=self.path, env={**self.env, **(env or {})}, **options)

    def run(self, *words, env=None, seconds=60, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run([KYMO, "run", *words], cwd=self.path, env={**self.env, **(env or {})},
                              capture_output=True, timeout=seconds, **options)

    def live_runs(self):
        root = self.live / "live"
        return sorted(p for p in root.iterdir()) if root.exists() else []


class Stream:
    def __init__(self, folder, head_path):
        data = head_path.read_bytes()
        self.table = data[16:80].split(b"\0")[0].decode()
        self.id, self.row_bytes = struct.unpack_from("<II", data, 80)
        self.emitted_rows, = struct.unpack_from("<Q", data, HEAD)
        self.dropped = sum(struct.unpack_from("<5Q", data, DROPPED))
        self.open_depth, = struct.unpack_from("<I", data, 8192)
        self.folders = [folder]

    def rows(self):
        """{number: bytes} of every row that a segment holds, each number once."""
        found = {}
        for folder in self.folders:
            for path in folder.glob(f"s{self.id}.[0-9]*"):
                data = path.read_bytes()
                magic, row_bytes, first, room = data[:7], *struct.unpack_from("<I", data, 20), \
                    *struct.unpack_from("<QQ", data, 32)
                assert magic == b"KYMOSEG", path
                for number in range(first, min(first + room, self.emitted_rows)):
                    at = 64 + (number - first) * row_bytes
                    found[number] = data[at:at + row_bytes]
        return found

    def kept(self):
        """How many; without keeping them all in memory."""
        ranges = {}
        for folder in self.folders:
            for path in folder.glob(f"s{self.id}.[0-9]*"):
                with open(path, "rb") as file:
                    head = file.read(64)
                first, room = struct.unpack_from("<QQ", head, 32)
                assert os.path.getsize(path) >= 64 + room * self.row_bytes
                ranges[first] = max(0, min(first + room, self.emitted_rows) - first)
        return sum(ranges.values())


class Process:
    def __init__(self, folder):
        self.folder = folder
        self.control = (folder / "control").read_bytes()
        self.role, = struct.unpack_from("<I", self.control, 24)
        self.pid, = struct.unpack_from("<i", self.control, 32)
        self.ended, self.wstatus, self.wstatus_known = struct.unpack_from("<IiI", self.control, 72)
        self.streams = [Stream(folder, p) for p in sorted(folder.glob("s*.head"))]


def processes(*halves, role=0):
    """Of a recording, whose live half (if any) is given first; a process that is in both is one."""
    found = {}
    for half in halves:
        for folder in sorted(pathlib.Path(half).glob("p*")):
            if folder.name in found:
                for stream in found[folder.name].streams:
                    stream.folders.append(folder)
            elif (folder / "control").exists():
                found[folder.name] = Process(folder)
    return [p for p in found.values() if p.role == role]


def zone_streams(*halves):
    return [s for p in processes(*halves) for s in p.streams if s.table == "trace.zones"]


def run_file(folder):
    data = (pathlib.Path(folder) / "run").read_bytes()
    assert data[:7] == b"KYMORUN"
    ended, wstatus = struct.unpack_from("<Ii", data, 80)
    return {"target": struct.unpack_from("<i", data, 60)[0], "ended": ended, "wstatus": wstatus,
            "peer": data[248:248 + 1024].split(b"\0")[0].decode(),
            "not_recorded": struct.unpack_from("<I", data, 248 + 1024 + 256 + 2048 + 1024 + 4)[0]}


def only_recording(place):
    found = sorted(place.path.glob("kymo-*"))
    assert len(found) == 1, found
    return found[0]


def have(program):
    return shutil.which(program) is not None
