"""import kymo where its extension is not."""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def import_from(folder):
    """What import kymo says in its last line."""
    done = subprocess.run([sys.executable, "-S", "-c", "import kymo"], cwd=folder, env={"PYTHONPATH": str(folder)}, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout
    return done.stderr.splitlines()[-1]


def test_a_source_that_is_not_built_says_how_to_install_it(tmp_path):
    shutil.copytree(ROOT / "python/kymo", tmp_path / "python/kymo")
    (tmp_path / "meson.build").touch()
    assert import_from(tmp_path / "python") == (
        f"ImportError: {tmp_path}/python/kymo is kymo's source and has not been built; "
        f"to install it: cd {tmp_path} && make && {sys.executable} -m pip install .")


def test_a_kymo_of_other_pythons_names_them_and_says_how_to_install_it(tmp_path):
    shutil.copytree(ROOT / "python/kymo", tmp_path / "kymo")
    for minor in (9, 12):  # of other machines, so that no Python takes them for its own
        (tmp_path / f"kymo/_kymo.cpython-3{minor}-other.so").touch()
    assert import_from(tmp_path) == (
        f"ImportError: the kymo in {tmp_path}/kymo was built for Python 3.9, 3.12, not for this Python "
        f"(cpython 3.{sys.version_info.minor}); to install it, run in kymo's source: make && {sys.executable} -m pip install .")
