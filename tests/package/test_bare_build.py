"""kymo without DuckDB, nanoarrow, microhttpd and the bundled pages: it links, records, and names what is missing."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WITHOUT = ["duckdb", "arrow", "http", "web"]


def run(*words, **options):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=600,
                          stdin=subprocess.DEVNULL, **options)


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """bare(words): runs the kymo of such a build; nothing but kymo and libkymo is compiled."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "live").mkdir(mode=0o700)
    for command in (["meson", "setup", folder / "build", ROOT, "-Doptimization=0", "-Dtests=false",
                     *(f"-D{name}=disabled" for name in WITHOUT)],
                    ["ninja", "-C", folder / "build", "core"]):
        done = run(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    clean = {key: value for key, value in os.environ.items() if not key.startswith("KYMO")}
    env = {**clean, "KYMO_DIR": str(folder / "live"), "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}
    return lambda *words: run(folder / "build/kymo", *words, env=env, cwd=folder)


def test_it_records(bare):
    done = bare("run", "-o", "a", "--", "true")
    assert done.returncode == 0, done.stderr
    assert "kymo: true ended with 0" in done.stderr


@pytest.mark.parametrize("words", [["query", "a", "SELECT 1"], ["report", "a"], ["export", "a"], ["pack", "a"]])
def test_what_needs_sql_names_duckdb(bare, words):
    bare("run", "-o", "a", "--", "true")
    done = bare(*words)
    assert done.returncode == 1 and done.stdout == ""
    assert f"kymo {words[0]}: cannot run SQL: this kymo was built without DuckDB" in done.stderr


def test_the_viewer_names_microhttpd(bare):
    done = bare("serve")
    assert done.returncode == 1
    assert "kymo serve: this kymo was built without the viewer: microhttpd.h was missing" in done.stderr


def test_doctor_names_what_is_missing(bare):
    assert "built without DuckDB" in " ".join(bare("doctor").stdout.split())


def test_no_source_asks_the_preprocessor_what_was_built():
    done = run("grep", "-rlE", "KYMO_NO_(DUCKDB|ARROW|HTTP|WEB)", ROOT / "src", ROOT / "python", ROOT / "compat")
    assert done.stdout == ""


def test_every_file_that_the_build_leaves_out_exists():
    names = re.findall(r"'((?:tables|serve|views)/[\w/]+(?:\.c)?)'", (ROOT / "src/meson.build").read_text())
    assert len(names) > 15
    assert [name for name in names if not (ROOT / "src" / name).exists()] == []
