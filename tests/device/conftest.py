"""OpenCL programs, compiled once for a run of the suite, and recorded."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = ROOT / "build/kymo"
LAYER = ROOT / "build/libkymo_opencl.so"


def reason_to_skip():
    if not LAYER.exists():
        return "build/libkymo_opencl.so was not built: CL/cl_layer.h (opencl-headers) is missing"
    if not pathlib.Path("/etc/OpenCL/vendors").is_dir() or not any(pathlib.Path("/etc/OpenCL/vendors").iterdir()):
        return "no OpenCL device: pocl-opencl-icd is missing"
    return None


class Lab:
    """A folder with the programs in it; PoCL's compiled kernels are kept there, too."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {**os.environ, "POCL_CACHE_DIR": str(folder / "pocl"), "KYMO_DIR": str(folder / "live"),
                            "XDG_STATE_HOME": str(folder / "state"), "KYMO_QUIET": ""}
        for name in ("KYMO", "KYMO_DEVICE", "OPENCL_LAYERS", "KYMO_RUN"):
            self.environment.pop(name, None)

    def program(self, name):
        made = self.folder / name
        if not made.exists():
            subprocess.run(["cc", "-g", "-Wall", "-Wextra", f"-I{ROOT}/include", "-o", made,
                            ROOT / f"tests/device/{name}.c", f"-L{ROOT}/build", "-lkymo", "-lOpenCL", "-lpthread",
                            f"-Wl,-rpath,{ROOT}/build", "-Wl,--as-needed"], check=True)
        return str(made)

    def plain(self, *command):
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, env=self.environment,
                              timeout=120, check=False)

    def record(self, name, *command, options=("--device",)):
        """What the program did under kymo, and the recording."""
        recording = self.folder / f"run-{name}"
        done = self.plain(KYMO, "run", "-q", "--force", "-o", recording, *options, "--", *command)
        return done, recording

    def query(self, recording, sql):
        done = self.plain(KYMO, "query", "-f", "json", recording, sql)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def rows(self, recording, sql):
        return [tuple(row.values()) for row in self.query(recording, sql)]


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("device")
    yield Lab(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def opencl(lab):
    """The same, where OpenCL is there."""
    why = reason_to_skip()
    if why:
        pytest.skip(why)
    return lab
