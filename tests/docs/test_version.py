"""The version is set in include/kymo/kymo.h; everything else takes it from there, or is checked here."""
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r'#define KYMO_VERSION "(.*)"', (ROOT / "include/kymo/kymo.h").read_text()).group(1)
# Files that may spell it, beside kymo.h: what is documented under it, and what tests record under it.
SPELL_IT = {"include/kymo/kymo.h", "CHANGELOG.md", "docs/api.md"}


def out(*words):
    return subprocess.run([str(word) for word in words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_the_program_prints_it():
    assert out(ROOT / "build/kymo", "version").splitlines()[0] == f"kymo {VERSION}"


def test_the_project_has_it():
    assert json.loads(out("meson", "introspect", "meson.build", "--projectinfo"))["version"] in (VERSION, "undefined")
    assert json.loads(out("meson", "introspect", "--projectinfo", "build"))["version"] == VERSION


def test_the_package_beside_the_build_has_it():
    (metadata,) = (ROOT / "build/python").glob("kymo-*.dist-info/METADATA")
    assert f"\nVersion: {VERSION}\n" in metadata.read_text()


def test_the_python_projects_take_it_from_meson():
    for project in ("pyproject.toml", "compat/python/pyproject.toml"):
        assert 'dynamic = ["version"]' in (ROOT / project).read_text()


def test_installed_man_pages_carry_it(installed):
    pages = sorted(installed.rglob("man1/*.1"))
    assert len(pages) == len(list((ROOT / "man").glob("*.1")))
    for page in pages:
        assert f'"kymo {VERSION}"' in page.read_text().splitlines()[0]


def test_the_changelog_begins_with_it():
    heading = next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    assert heading.split(",")[0] == f"## {VERSION}"


def test_no_other_file_spells_it():
    found = subprocess.run(["git", "grep", "-lwF", VERSION, "--", "*.py", "*.toml", "*.build", "*.md", "*.1", "*.h", "*.in", ":!tests"],
                           cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    assert set(found) <= SPELL_IT
