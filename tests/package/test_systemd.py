"""The units of packaging/systemd, as systemd itself reads them."""
import os
import pathlib
import shutil
import subprocess

import pytest

UNITS = sorted((pathlib.Path(__file__).resolve().parents[2] / "packaging/systemd").glob("*.service"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.parametrize("wrong, complaint", [("", ""), ("Restart=nonsense", "Failed to parse service restart specifier")])
@pytest.mark.parametrize("source", UNITS, ids=lambda path: path.stem)
def test_the_unit_is_right(tmp_path, source, wrong, complaint):
    unit = tmp_path / source.name
    unit.write_text(source.read_text().replace("Restart=on-failure", wrong or "Restart=on-failure"))
    tmp_path.chmod(0o700)
    done = subprocess.run(["systemd-analyze", "--user", "--man=no", "verify", unit], capture_output=True, text=True,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
    assert (complaint in done.stderr) if wrong else not done.stdout + done.stderr, done.stderr
