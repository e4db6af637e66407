"""Everything that tools/setup fetches is pinned by its hash, and a file that differs is refused."""
import base64
import hashlib
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETUP = (ROOT / "tools/setup").read_text()


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=60, **options)


def test_everything_that_setup_names_is_locked():
    done = run(ROOT / "tools/lock", "--check")
    assert done.returncode == 0, done.stdout


def test_a_package_that_is_not_locked_is_found(tmp_path):
    for name in ("lock", "locked.py", "locked.txt", "locked-npm.txt", "setup", "deps"):
        (tmp_path / "tools").mkdir(exist_ok=True)
        (tmp_path / "tools" / name).write_text((ROOT / "tools" / name).read_text())
    with open(tmp_path / "tools/deps", "a") as deps:
        deps.write("test pip other other==1.0 a package that nobody has locked\n")
    (tmp_path / "tools/setup").write_text(re.sub(r"^UPLOT=\S+", "UPLOT=9.9.9", SETUP, flags=re.M))
    done = run(sys.executable, tmp_path / "tools/lock", "--check")
    assert done.returncode == 1
    assert done.stdout.splitlines() == ["tools/locked.txt: lacks other==1.0", "tools/locked-npm.txt: lacks uplot@9.9.9"]


def test_pip_installs_by_hash_only():
    """Every call of pip names a hash, or installs nothing."""
    calls = [call for call in re.findall(r"-m pip (?:install|download)(?:[^\n]*\\\n)*[^\n]*", SETUP)]
    assert len(calls) == 3
    for call in calls:
        assert "--dry-run" in call or "--require-hashes" in call or '-r "$tmp/wanted"' in call, call
    assert re.search(r"nanoarrow==\$NANOARROW --hash=sha256:\$NANOARROW_SHA256", SETUP)


def test_the_lists_name_no_registry():
    for path in (ROOT / "tools").glob("locked*.txt"):
        assert "://" not in path.read_text(), path.name


# --- npm ------------------------------------------------------------------------------------------------------------

@pytest.fixture
def npm_check(tmp_path):
    """npm_check() of tools/setup, in a folder whose list has one package, for a file of these bytes."""
    function = re.search(r"^npm_check\(\) \{.*?^\}", SETUP, re.M | re.S)[0]
    digest = base64.b64encode(hashlib.sha512(b"as published").digest()).decode()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/locked-npm.txt").write_text(f"@some/one@1.0.0 sha512-{digest}\n@other/one@1.0.0 not-published\n")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)

    def check(content, package):
        (tmp_path / "file.tgz").write_bytes(content)
        return run("bash", "-c", f"{function}\nnpm_check file.tgz {package}", cwd=tmp_path)
    return check


def test_the_published_file_is_accepted(npm_check):
    assert npm_check(b"as published", "@some/one@1.0.0").returncode == 0


def test_another_file_of_npm_is_refused(npm_check):
    done = npm_check(b"as attacked", "@some/one@1.0.0")
    assert done.returncode == 1
    assert "error: @some/one@1.0.0 is sha512-" in done.stdout and "as tools/locked-npm.txt has it" in done.stdout


@pytest.mark.parametrize("package", ["@some/one@1.0.1", "@other/one@1.0.0", "elsewhere@1"])
def test_a_package_of_npm_without_a_hash_is_refused(npm_check, package):
    done = npm_check(b"as published", package)
    assert done.returncode == 1
    assert f"error: tools/locked-npm.txt has no hash of {package}" in done.stdout


# --- PyPI -----------------------------------------------------------------------------------------------------------

def hashes_of(tmp_path, *packages):
    """What tools/setup would install if pip chose these."""
    report = {"install": [{"metadata": {"name": name, "version": version}} for name, version in packages]}
    (tmp_path / "report").write_text(json.dumps(report))
    return run(sys.executable, ROOT / "tools/locked.py", "hashes", tmp_path / "report")


def test_what_pip_chose_is_installed_with_its_hashes(tmp_path):
    done = hashes_of(tmp_path, ("Jinja2", "3.1.6"))
    assert done.returncode == 0
    assert re.fullmatch(r"jinja2==3\.1\.6( --hash=sha256:[0-9a-f]{64})+\n", done.stdout)


@pytest.mark.parametrize("package", [("jinja2", "3.1.7"), ("unknown", "1.0"), ("torch", "2.13.0+evil")])
def test_a_version_without_a_hash_is_refused(tmp_path, package):
    done = hashes_of(tmp_path, ("attrs", "26.1.0"), package)
    assert done.returncode == 1
    assert f"error: no hash of {package[0]} {package[1]} is locked" in done.stderr


def test_every_python_has_its_versions():
    """A version that needs a newer Python is locked at an older one for 3.10."""
    rows = run(sys.executable, ROOT / "tools/locked.py", "constraints").stdout.splitlines()
    numpy = [row for row in rows if row.startswith("numpy==")]
    assert len(numpy) > 1 and any("< '3.11'" in row for row in numpy) and any(">= '3.11'" in row for row in numpy)
