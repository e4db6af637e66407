"""The unit of packaging/systemd, as systemd itself reads it."""
import os
import pathlib
import shutil
import subprocess

import pytest

UNIT = pathlib.Path(__file__).resolve().parents[2] / "packaging/systemd/kymo-serve.service"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.parametrize("wrong, complaint", [("", ""), ("Restart=nonsense", "Failed to parse service restart specifier")])
def test_the_unit_is_right(tmp_path, wrong, complaint):
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("Restart=on-failure", wrong or "Restart=on-failure"))
    tmp_path.chmod(0o700)
    done = subprocess.run(["systemd-analyze", "--user", "--man=no", "verify", unit], capture_output=True, text=True,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)})
    assert (complaint in done.stderr) if wrong else not done.stdout + done.stderr, done.stderr
