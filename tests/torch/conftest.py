"""As in tests/python; what is recorded here imports torch, so that one recording serves several tests where it can."""
import importlib.util
import os
import pathlib
import sys

import pytest

spec = importlib.util.spec_from_file_location("python_conftest", pathlib.Path(__file__).parents[1] / "python/conftest.py")
base = importlib.util.module_from_spec(spec)
spec.loader.exec_module(base)
home, plain, record, supervise = base.home, base.plain, base.record, base.supervise


def pytest_collection_modifyitems(items):
    why = base.WHY_NOT
    if not why and importlib.util.find_spec("torch") is None:
        why = "torch is not installed: make setup"
    for item in items:
        if why:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(scope="session")
def quiet_home(tmp_path_factory):
    live = tmp_path_factory.mktemp("live")
    live.chmod(0o700)
    return {**base.without_kymo(os.environ), "KYMO_DIR": str(live), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def record_once(tmp_path_factory):
    """record_once(code): as record(code), for a fixture that many tests only ask."""
    def go(code, env=None):
        folder = tmp_path_factory.mktemp("once")
        (folder / "live").mkdir(mode=0o700)
        (folder / "script.py").write_text(base.program_text(code))
        env = {**base.without_kymo(os.environ), "KYMO_DIR": str(folder / "live"), "KYMO_BIN": str(base.KYMO), "KYMO": "on",
               **(env or {})}
        done = base.run([sys.executable, folder / "script.py"], env, folder)
        (made,) = (folder / "live").iterdir()
        return base.Recording(made, done)
    return go
