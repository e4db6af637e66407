"""The fixtures of tests/python, for programs that are run under `python -m kymo` and `kymo run --python`."""
import importlib.util
import pathlib
import textwrap

_path = pathlib.Path(__file__).resolve().parents[1] / "python/conftest.py"
_spec = importlib.util.spec_from_file_location("python_conftest", _path)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)
globals().update({name: value for name, value in vars(_module).items() if not name.startswith("__")})

import pytest  # noqa: E402
from recorded import Front  # noqa: E402


@pytest.fixture
def front(home, tmp_path):
    """See recorded.Front."""
    return Front(home, tmp_path)


@pytest.fixture
def place(tmp_path, home):
    """A folder with its environment, in which nothing of ours is imported by itself."""
    def write(text, name="program.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return path
    write.env, write.path = {**home, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}, tmp_path
    return write
