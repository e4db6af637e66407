"""An installed kymo, as a reader of these pages has it."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """The prefix. Its commands come first on the PATH, its libraries are found by pkg-config."""
    where = tmp_path_factory.mktemp("installed")
    done = subprocess.run(["meson", "install", "-C", ROOT / "build", "--no-rebuild", "--quiet", "--destdir", where],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = where.rglob("bin/kymo")
    return found.parent.parent


@pytest.fixture
def reader(installed, tmp_path):
    """The environment in which a page's commands run: recordings below tmp_path, 80 columns, no colour."""
    live = tmp_path / "live"
    live.mkdir(mode=0o700)
    (tmp_path / "work").mkdir()
    libraries = next(installed.rglob("libkymo.so")).parent
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KYMO", "VACCEL", "PROBING", "NEURON"))}
    return {**clean, "KYMO_DIR": str(live), "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path),
            "PATH": f"{installed / 'bin'}:{pathlib.Path(sys.executable).parent}:{clean['PATH']}",
            "PKG_CONFIG_PATH": str(libraries / "pkgconfig"), "LD_LIBRARY_PATH": str(libraries), "LC_ALL": "C.UTF-8",
            "COLUMNS": "80"}
