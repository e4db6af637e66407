"""Reports are opened in headless Chromium, once for each page; tests look at what the driver saw."""
import json
import os
import pathlib
import re
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


class Page:
    """A browser's page; every call is one of remote.mjs."""

    def __init__(self, browser):
        node, _, playwright, chromium = browser
        self.child = subprocess.Popen([node, ROOT / "tests/web/remote.mjs", playwright, chromium, SHOTS], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        assert json.loads(self.child.stdout.readline()) == {"value": "ready"}

    def __getattr__(self, name):
        def call(*args):
            self.child.stdin.write(json.dumps({"do": name, "args": args}) + "\n")
            self.child.stdin.flush()
            answer = json.loads(self.child.stdout.readline())
            assert "failed" not in answer, answer["failed"]
            return answer["value"]
        return call

    def tab(self, name):
        self.click(f"#tab-{name}")
        self.until(f"document.querySelector('#tab-{name}')?.getAttribute('aria-selected') === 'true'")

    def drawn(self):
        """Until the timeline or the flame graph holds colours of zones."""
        self.until("""(() => { const c = document.querySelector('.stage canvas'); if (!c || !c.width) return false;
            const d = c.getContext('2d').getImageData(140, 30, c.width - 150, 300).data, s = new Set();
            for (let i = 0; i < d.length; i += 16) s.add((d[i] << 16) | (d[i + 1] << 8) | d[i + 2]);
            return s.size > 4; })()""")

    def close(self):
        self.child.stdin.close()
        self.child.wait(60)


class Viewer:
    """kymo serve, and programs under kymo run beside it."""

    def __init__(self, folder, *words):
        self.folder, self.programs = folder, []
        (folder / "live").mkdir(mode=0o700, exist_ok=True)
        self.env = {**os.environ, "KYMO_DIR": str(folder / "live"), "HOME": str(folder), "XDG_STATE_HOME": str(folder), "NO_COLOR": "1"}
        self.env.pop("KYMO_TOKEN", None)
        # Port 0 is not taken: it goes on from the one that is named to one that is free.
        self.child = subprocess.Popen([KYMO, "serve", "--port", str(20000 + os.getpid() % 20000), *words], env=self.env, cwd=folder,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = ""
        while "http://" not in said:
            line = self.child.stderr.readline()
            assert line, f"kymo serve said {said!r} and ended"
            said += line
        self.url = re.search(r"http://\S+", said)[0]

    def start(self, name, *command, options=()):
        child = subprocess.Popen([KYMO, "run", "-o", self.folder / name, *options, "--", *command], env=self.env, cwd=self.folder,
                                 stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        self.programs.append(child)
        return child

    def targets(self):
        done = subprocess.run([KYMO, "ls", "-f", "json"], env=self.env, capture_output=True, text=True, cwd=self.folder, check=True)
        return [t for t in json.loads(done.stdout) if t["path"].startswith(str(self.folder))]

    def query(self, target, sql):
        return subprocess.run([KYMO, "query", "-f", "json", target, sql], env=self.env, cwd=self.folder, capture_output=True,
                              text=True, check=False).stdout

    def close(self):
        for child in [*self.programs, self.child]:
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(20)
                except subprocess.TimeoutExpired:
                    child.kill()
                    child.wait()


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
