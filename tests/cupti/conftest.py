"""The stand-in for CUDA, made of CUPTI's headers, and programs on it. No test here has seen a GPU."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "tests/cupti"
KYMO = ROOT / "build/kymo"
LIBRARY = ROOT / "build/libkymo_cupti.so"
TYPES = {"KERNEL_T": "Kernel", "MEMCPY_T": "Memcpy", "PEER_T": "MemcpyPtoP", "MEMSET_T": "Memset", "MEMORY_T": "Memory",
         "SYNCHRONIZATION_T": "Synchronization", "GRAPH_T": "GraphTrace", "OVERHEAD_T": "Overhead"}


class Headers:
    """One version of CUPTI, as a wheel of PyPI holds it: headers and the real library."""

    def __init__(self, folder, number):
        self.include = folder / "include"
        self.library = next((folder / "lib").glob("libcupti.so*"))
        version = re.search(r"#define CUPTI_API_VERSION (\d+)", (self.include / "cupti_version.h").read_text()).group(1)
        self.name = f"{folder.name}-{version}-{number}"  # 11.8 and 12.1 have one number

    def flags(self):
        return [f"-I{HERE}/cuda", f"-I{self.include}", *(f"-D{macro}={name}" for macro, name in self.types().items())]

    def types(self):
        """The newest struct of each kind: the version without a number is the oldest, and numbers grow."""
        text = "".join(path.read_text(errors="replace") for path in self.include.glob("cupti_activity*.h"))
        found = {}
        for macro, stem in TYPES.items():
            numbers = [int(n or 1) for n in re.findall(rf"}} CUpti_Activity{stem}(\d*);", text)]
            found[macro] = f"CUpti_Activity{stem}{max(numbers) if max(numbers) > 1 else ''}"
        return found

    def callback_names(self):
        """A C header with the names of all callbacks by id."""
        lines = []
        for domain in ("runtime", "driver"):
            text = (self.include / f"cupti_{domain}_cbid.h").read_text()
            rows = re.findall(rf"CUPTI_{domain.upper()}_TRACE_CBID_(\w+)\s*=\s*(\d+)", text)
            lines.append(f"static const char *const {domain}_names[] = {{")
            lines += [f'[{number}] = "{name}",' for name, number in rows if name not in ("INVALID", "SIZE", "FORCE_INT")]
            lines.append("};")
        return "\n".join(lines) + "\n"


def installed():
    """CUPTI's versions here: of the .venv, and of KYMO_CUPTI (folders with include and lib, between colons)."""
    packages = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    folders = [packages / "cuda_cupti", packages / "cu13"]
    folders += [pathlib.Path(word) for word in os.environ.get("KYMO_CUPTI", "").split(":") if word]
    return [Headers(folder, number) for number, folder in enumerate(folders) if (folder / "include/cupti_activity.h").exists()]


VERSIONS = installed()
MISSING = "no headers of CUPTI: nvidia-cuda-cupti-cu12 and nvidia-cuda-cupti of PyPI are not in .venv (make setup)"


class Lab:
    def __init__(self, folder):
        self.folder = folder
        self.headers = VERSIONS[0]
        self.of = {}  # the headers of each libcupti
        self.environment = {**os.environ, "KYMO_DIR": str(folder / "live"), "XDG_STATE_HOME": str(folder / "state"),
                            "KYMO_QUIET": ""}
        for name in ("KYMO", "KYMO_DEVICE", "KYMO_RUN", "CUDA_INJECTION64_PATH"):
            self.environment.pop(name, None)
        (folder / "callback_names.h").write_text(self.headers.callback_names())
        self.compile("libcuda.so.1", "standin_cuda.c", "-shared", "-Wl,-soname,libcuda.so.1", "-lpthread", "-ldl")
        self.library("one", self.headers)
        self.library("several", self.headers, "-DSEVERAL")

    def compile(self, out, *words, headers=None):
        files = [str(HERE / word) if word.endswith(".c") and "/" not in word else word for word in words]
        subprocess.run(["cc", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", f"-I{self.folder}", f"-I{ROOT}/include", f"-I{ROOT}/src",
                        *(headers or self.headers).flags(), "-o", self.folder / out, *files], check=True)
        return str(self.folder / out)

    def library(self, name, headers, *flags):
        (self.folder / name).mkdir()
        self.of[name] = headers
        self.compile(f"{name}/libcupti.so.12", "standin_cupti.c", "-shared", "-Wl,-soname,libcupti.so.12", *flags,
                     str(self.folder / "libcuda.so.1"), "-lpthread", headers=headers)

    def program(self, name, cupti=None):
        out = f"{name}-{cupti or 'none'}"
        if (self.folder / out).exists():
            return str(self.folder / out)
        linked = [str(self.folder / cupti / "libcupti.so.12")] if cupti else []
        return self.compile(out, f"{name}.c", str(self.folder / "libcuda.so.1"), *linked, f"-L{ROOT}/build", "-lkymo", "-lpthread",
                            f"-Wl,-rpath,{self.folder}:{self.folder / (cupti or 'one')}:{ROOT}/build",
                            headers=self.of[cupti or "one"])

    def plain(self, *command, **more):
        return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120, check=False,
                              env={**self.environment, **more})

    def record(self, name, *command, options=("--device",), cupti="one", **more):
        """What a program did under kymo, and the recording; a program without CUPTI of its own finds the stand-in's."""
        recording = self.folder / f"run-{name}"
        more.setdefault("LD_LIBRARY_PATH", str(self.folder / cupti))
        done = self.plain(KYMO, "run", "-q", "--force", "-o", recording, *options, "--", *command, **more)
        return done, recording

    def rows(self, recording, sql):
        done = self.plain(KYMO, "query", "-f", "json", recording, sql)
        assert done.returncode == 0, done.stderr
        return [tuple(row.values()) for row in json.loads(done.stdout)]


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    if not VERSIONS:
        pytest.skip(MISSING)
    folder = tmp_path_factory.mktemp("cupti")
    print("CUDA and CUPTI are a stand-in; no GPU is used", file=sys.stderr)
    yield Lab(folder)
    shutil.rmtree(folder, ignore_errors=True)
