"""What is installed: how much it is; a wheel that works by itself, typed, and compat modules that never replace real ones."""
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 400


def run(command, cwd=ROOT, **env):
    done = subprocess.run([str(word) for word in command], cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True,
                          check=False, timeout=SECONDS, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done


def test_the_types_are_consistent():
    pytest.importorskip("mypy", reason="no mypy in this Python")
    run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull])


TYPED = """
import kymo
from typing_extensions import assert_type

with kymo.region("x") as region:
    assert_type(region, kymo.Region)

@kymo.region
def double(n: int) -> int:
    return 2 * n

assert_type(double(2), int)
result = kymo.query("SELECT 1")
assert_type(len(result), int)
with kymo.Profiler() as profiler:
    assert_type(profiler, kymo.Profiler)
kymo.table("app.t", n=int).append(1)
kymo.query(5)  # type: ignore[arg-type]
"""


def test_a_program_that_uses_kymo_is_checked(tmp_path):
    pytest.importorskip("mypy", reason="no mypy in this Python")
    (tmp_path / "program.py").write_text(TYPED)
    run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, tmp_path / "program.py"], tmp_path,
        MYPYPATH=str(ROOT / "python"))


# --- how much it is -----------------------------------------------------------------------------------------------

MOST_BYTES = 7_000_000


def too_much(sizes):
    """Nothing, or what takes most, where all together is too much. DuckDB is not ours, and the system's may serve."""
    ours = {name: size for name, size in sizes.items() if "libduckdb" not in name}
    assert any(name.endswith("bin/kymo") or name.endswith("scripts/kymo") for name in ours)
    largest = sorted(ours.items(), key=lambda one: -one[1])[:8]
    return [] if sum(ours.values()) < MOST_BYTES else [f"{sum(ours.values())} bytes", *largest]


def test_make_install_takes_less_than_7_mb_without_duckdb(tmp_path):
    """With the extensions for every Python that is here, by the options that the Makefile has."""
    words = re.search(r"meson install -C build (.*)", (ROOT / "Makefile").read_text()).group(1).split()
    run(["meson", "install", "-C", ROOT / "build", "--no-rebuild", *words, "--destdir", tmp_path])
    sizes = {str(path): path.stat().st_size for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()}
    assert too_much(sizes) == []


def test_a_wheel_takes_less_than_7_mb(wheel):
    assert too_much({info.filename: info.file_size for info in zipfile.ZipFile(wheel).infolist()}) == []


# --- licences, and what it is made of ---------------------------------------------------------------------------

LICENSES = {"LICENSE": "MIT License", "duckdb.txt": "Stichting DuckDB", "nanoarrow.txt": "Apache License",
            "flatcc.txt": "Apache License", "uplot.txt": "Leon Sorokin", "esbuild.txt": "Evan Wallace"}


def test_make_install_brings_the_licences_of_what_it_installs(tmp_path):
    run(["meson", "install", "-C", ROOT / "build", "--no-rebuild", "--quiet", "--destdir", tmp_path])
    folder = next(tmp_path.rglob("share/doc/kymo/licenses"))
    assert {name: text in (folder / name).read_text() for name, text in LICENSES.items()} == dict.fromkeys(LICENSES, True)


def test_a_wheel_has_the_licences_of_what_it_holds(wheel):
    with zipfile.ZipFile(wheel) as archive:
        files = {pathlib.PurePath(name).name: name for name in archive.namelist() if "/licenses/" in name and "dist-info" not in name}
        found = {name: text in archive.read(files[name]).decode() for name, text in LICENSES.items() if name in files}
    assert found == dict.fromkeys(LICENSES, True)


def test_every_dependency_has_a_licence_and_the_page_is_up_to_date():
    run([ROOT / "tools/gen-dependencies", "--check"])


@pytest.fixture(scope="module")
def sbom(tmp_path_factory):
    path = tmp_path_factory.mktemp("sbom") / "kymo.cdx.json"
    run([ROOT / "tools/gen-dependencies", "--sbom", path])
    return json.loads(path.read_text())


def test_the_sbom_fits_the_schema_of_cyclonedx(sbom):
    cyclonedx = pytest.importorskip("cyclonedx", reason="no cyclonedx-python-lib in this Python")
    jsonschema = pytest.importorskip("jsonschema", reason="no jsonschema in this Python")
    import referencing
    folder = pathlib.Path(cyclonedx.__file__).parent / "schema/_res"
    schemas = {path.name: json.loads(path.read_text()) for path in folder.glob("*.schema.json")}
    bom = schemas["bom-1.5.SNAPSHOT.schema.json"]
    del bom["$id"]  # so that it finds the others by the names of their files
    registry = referencing.Registry().with_contents(schemas.items())
    validator = jsonschema.Draft7Validator(bom, registry=registry)
    assert [error.message[:300] for error in validator.iter_errors(sbom)] == []


def test_the_sbom_names_what_is_shipped_with_licences_and_fetched_with_hashes(sbom):
    parts = sbom["components"]
    shipped = {part["name"]: part["licenses"] for part in parts if part["scope"] == "required"}
    assert set(shipped) == {"DuckDB", "nanoarrow", "flatcc", "uPlot", "esbuild"} and all(shipped.values())
    assert [part["name"] for part in parts if part["purl"].startswith(("pkg:npm/", "pkg:pypi/")) and part["scope"] == "excluded"
            and not part.get("hashes")] == []
    assert len({part["bom-ref"] for part in parts}) == len(parts)


# --- the wheels -------------------------------------------------------------------------------------------------

def build(folder, out, *words):
    pytest.importorskip("mesonpy", reason="no meson-python in this Python")
    pytest.importorskip("mesonbuild", reason="no Meson in this Python")
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    run([sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--no-input", *words, "-w", out, folder],
        PATH=path)
    (wheel,) = out.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("wheel"), f"--config-settings=build-dir={ROOT}/build-wheel")


@pytest.fixture(scope="module")
def compat(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compat")
    return build(ROOT / "compat/python", folder, f"--config-settings=build-dir={folder}/build")


@pytest.fixture(scope="module")
def venv(wheel, compat, tmp_path_factory):
    """An environment that has the wheels and nothing of this tree."""
    folder = tmp_path_factory.mktemp("venv") / "v"
    run([sys.executable, "-m", "venv", folder])
    run([folder / "bin/python", "-m", "pip", "install", "--no-index", "--no-deps", wheel, compat])
    return folder


@pytest.fixture
def inside(venv, tmp_path):
    """inside(words): runs a command of the environment, away from this tree."""
    (tmp_path / "live").mkdir(mode=0o700)
    clean = {"KYMO_DIR": str(tmp_path / "live"), "XDG_STATE_HOME": str(tmp_path), "KYMO_BIN": "", "PYTHONPATH": ""}

    def go(program, *words, **env):
        return run([venv / "bin" / program, *words], tmp_path, **{**clean, **env})
    return go


def test_the_wheel_holds_all_that_is_needed(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tag = f"cpython-{sys.version_info[0]}{sys.version_info[1]}"
    for name in ("kymo/__init__.py", "kymo/py.typed", "kymo/_kymo.pyi", "kymo/_inject/sitecustomize.py",
                 "kymo/profiler/__init__.py", "kymo/libkymo.so.0", "kymo/libkymo_memory.so.0",
                 "kymo_auto.pth"):
        assert name in names
    for extension in ("_kymo", "_trace", "_arrow", "_metrics", "_memory"):
        assert any(name.startswith(f"kymo/{extension}.{tag}") for name in names), extension
    assert any(name.endswith("scripts/kymo") for name in names)
    assert not [name for name in names if "meson.build" in name or "__pycache__" in name]


def test_a_program_is_traced_and_asked_about(inside, tmp_path):
    (tmp_path / "program.py").write_text("def f():\n    pass\nfor _ in range(7):\n    f()\nprint('ran')\n")
    assert inside("python", "-m", "kymo", "-o", "run", "program.py").stdout == "ran\n"
    assert inside("kymo", "query", "-f", "csv", "run", "SELECT count FROM trace.regions WHERE name = 'f'").stdout == "count\n7\n"
    code = "import kymo; print(kymo.query('SELECT count FROM trace.regions WHERE name = \\'f\\'', 'run')[0])"
    assert inside("python", "-c", code).stdout == "{'count': 7}\n"


def test_the_wheel_starts_by_a_variable_too(inside, tmp_path):
    (tmp_path / "program.py").write_text("def f():\n    pass\nf()\n")
    inside("python", "program.py", KYMO_PYTHON="on")
    assert inside("kymo", "query", "-f", "csv", "latest", "SELECT count FROM trace.regions WHERE name = 'f'"
                  ).stdout == "count\n1\n"


# --- compat -----------------------------------------------------------------------------------------------------

def test_compat_modules_speak_for_kymo(inside, tmp_path):
    assert inside("python", "-c", "import kymo, tracy; print(tracy.Profiler is kymo.Profiler, tracy.signpost is kymo.signpost)"
                  ).stdout == "True True\n"
    (tmp_path / "program.py").write_text("def f():\n    pass\nf()\n")
    inside("python", "-m", "tracy", "-o", "run", "program.py")
    assert (tmp_path / "run").is_dir()


REAL = "WHO = 'the real one'\n"


@pytest.fixture
def installed_tracy(venv):
    site = next((venv / "lib").glob("python*/site-packages"))
    (site / "tracy").mkdir()
    (site / "tracy/__init__.py").write_text(REAL)
    (site / "tracy/__main__.py").write_text("print('the real main')\n")
    yield site
    for path in sorted(site.glob("tracy/**/*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (site / "tracy").rmdir()


def test_a_real_tracy_that_is_installed_stays(inside, installed_tracy):
    assert inside("python", "-c", "import tracy; print(tracy.WHO)").stdout == "the real one\n"
    assert inside("python", "-m", "tracy").stdout == "the real main\n"
    assert (installed_tracy / "tracy/__init__.py").read_text() == REAL


def test_a_real_tracy_that_comes_later_on_the_path_is_given_way(inside, tmp_path):
    (tmp_path / "later/tracy").mkdir(parents=True)
    (tmp_path / "later/tracy/__init__.py").write_text(REAL)
    (tmp_path / "later/tracy/part.py").write_text("PART = 1\n")
    code = f"import sys; sys.path.append({str(tmp_path / 'later')!r}); import tracy, tracy.part; print(tracy.WHO, tracy.part.PART)"
    assert inside("python", "-c", code).stdout == "the real one 1\n"
    ours = f"import sys; sys.path.append({str(tmp_path / 'later')!r}); import tracy; print(tracy.Profiler.__module__)"
    assert inside("python", "-c", ours, KYMO_COMPAT="on").stdout == "kymo._profiler\n"


def test_a_folder_that_is_called_tracy_is_no_module(inside, tmp_path):
    (tmp_path / "tracy").mkdir()
    (tmp_path / "tracy/notes.txt").write_text("a folder of the user's\n")
    assert inside("python", "-c", "import tracy; print(tracy.Profiler.__module__)").stdout == "kymo._profiler\n"


def test_the_modules_are_those_of_the_table():
    sys.path.append(str(ROOT / "compat/python/kymo_compat"))
    try:
        import _kymo_compat
    finally:
        sys.path.pop()
    folder = ROOT / "compat/python/kymo_compat"
    assert {path.parent.name for path in folder.glob("*/__init__.py")} == set(_kymo_compat.MODULES)
