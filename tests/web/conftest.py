"""Reports are opened in headless Chromium, once for each page; tests look at what the driver saw."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()
PROGS = pathlib.Path(os.environ.get("KYMO_PROGS", ROOT / "build/tests/progs")).resolve()
PLAYWRIGHT = ROOT / "deps/playwright-core"
SHOTS = ROOT / "build/screenshots"


@pytest.fixture(scope="session")
def browser():
    """The words that start the driver."""
    node, chromium = shutil.which("node"), shutil.which("chromium") or shutil.which("chromium-browser")
    for what, there in (("node", node), ("chromium", chromium), ("playwright-core", (PLAYWRIGHT / "index.js").exists())):
        if not there:
            pytest.skip(f"{what} is not here (make setup fetches it)")
    SHOTS.mkdir(parents=True, exist_ok=True)
    return [node, ROOT / "tests/web/driver.mjs", PLAYWRIGHT, chromium]


@pytest.fixture(scope="session")
def page(browser, tmp_path_factory):
    """page(check, *words of made_run): the report's path and what the driver saw."""
    folder = tmp_path_factory.mktemp("web")
    env = {**os.environ, "KYMO_DIR": str(folder), "HOME": str(folder), "XDG_STATE_HOME": str(folder)}

    def look(check, *words):
        recording, file = folder / "-".join(words), folder / f"{'-'.join(words)}.html"
        if not recording.exists():
            subprocess.run([PROGS / "made_run", recording, *words], check=True)
        if not file.exists():
            done = subprocess.run([KYMO, "report", recording, file], env=env, capture_output=True, text=True)
            if "built without HTML" in done.stderr:
                pytest.skip("this kymo was built without HTML reports")
            assert done.returncode == 0, done.stderr
        done = subprocess.run([*browser, check, file, SHOTS], capture_output=True, text=True, timeout=240)
        assert done.returncode == 0 and done.stdout, done.stderr[-2000:]
        seen = json.loads(done.stdout)
        assert "failed" not in seen, seen["failed"]
        return file, seen
    return look
