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


class Pages:
    """Made recordings, and what the driver saw of pages of them."""

    def __init__(self, browser, folder):
        self.browser, self.folder = browser, folder
        self.env = {**os.environ, "KYMO_DIR": str(folder), "HOME": str(folder), "XDG_STATE_HOME": str(folder)}

    def recording(self, *words):
        path = self.folder / "-".join(words)
        if not path.exists():
            subprocess.run([PROGS / "made_run", path, *words], check=True)
        return path

    def kymo(self, *words):
        done = subprocess.run([KYMO, *words], env=self.env, capture_output=True, text=True)
        if "built without HTML" in done.stderr:
            pytest.skip("this kymo was built without HTML reports")
        return done

    def look(self, check, file):
        done = subprocess.run([*self.browser, check, file, SHOTS], capture_output=True, text=True, timeout=240)
        assert done.returncode == 0 and done.stdout, done.stderr[-2000:]
        seen = json.loads(done.stdout)
        assert "failed" not in seen, seen["failed"]
        return seen


@pytest.fixture(scope="session")
def pages(browser, tmp_path_factory):
    return Pages(browser, tmp_path_factory.mktemp("web"))


@pytest.fixture(scope="session")
def page(pages):
    """page(check, *words of made_run): the report's path and what the driver saw."""
    def look(check, *words):
        file = pages.folder / f"{'-'.join(words)}.html"
        if not file.exists():
            done = pages.kymo("report", pages.recording(*words), file)
            assert done.returncode == 0, done.stderr
        return file, pages.look(check, file)
    return look
