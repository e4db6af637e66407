"""Trainers under kymo run, with small packages of the same names: `make trainers` runs the real ones (tests/trainers)."""
import textwrap

import pytest

TRAINER = """
from .trainer_callback import CallbackHandler

class Trainer:
    def training_step(self, model, inputs, number=None):
        if inputs == "bad":
            raise KeyError("mine")
        return inputs * 2

    def evaluate(self):
        return {"eval_loss": 0.25}

    predict = None

    def get_batch_samples(self, iterator, many, device):
        return [next(iterator) for _ in range(many)], None

    def _save_checkpoint(self, model, trial):
        return "saved"

    def _load_from_checkpoint(self, path):
        return path
"""
CALLBACK = """
class CallbackHandler:
    def on_log(self, args, state, control, logs):
        return sorted(logs)
"""
PHASES = "SELECT name, count FROM trace.regions WHERE file LIKE '%/transformers/%' ORDER BY name"
COUNTERS = "SELECT name, value FROM trace.counters WHERE name NOT LIKE 'steps_per%' ORDER BY name, value"
MARKS = "SELECT text FROM trace.marks WHERE name = 'kymo.trainers'"
USE = """
    from transformers.trainer import Trainer, CallbackHandler
    class State: global_step = 4
    def log(**logs): return CallbackHandler().on_log(None, State, None, logs)
    trainer = Trainer()
"""


@pytest.fixture
def package(tmp_path):
    """package(name, version, **files): a package that a script of this test imports."""
    def go(name, version, **files):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "__init__.py").write_text(f"__version__ = {version!r}\n")
        for file, text in files.items():
            (folder / f"{file}.py").write_text(text)
    return go


@pytest.fixture
def transformers(package):
    package("transformers", "5.1.0", trainer=TRAINER.replace("    predict = None", "    def predict(self): pass"),
            trainer_callback=CALLBACK)


def program(code):
    return textwrap.dedent(USE) + textwrap.dedent(code)


def test_phases_are_zones_and_metrics_counters(transformers, supervise):
    recording = supervise(program("""
        for number in range(3):
            assert trainer.get_batch_samples(iter([number]), many=1, device=None) == ([number], None)
            assert trainer.training_step(None, number) == 2 * number
        assert trainer.evaluate() == {"eval_loss": 0.25} and trainer._save_checkpoint(None, None) == "saved"
        assert log(loss=0.5, learning_rate=1, words="no number") == ["learning_rate", "loss", "words"]
        State.global_step = 8
        log(loss=0.25)
    """))
    assert [tuple(row.values()) for row in recording.query(PHASES)] == [
        ("checkpoint", 1), ("data", 3), ("evaluation", 1), ("logging", 2), ("training step", 3)]
    assert [tuple(row.values()) for row in recording.query(COUNTERS)] == [("learning_rate", 1.0), ("loss", 0.25), ("loss", 0.5)]
    assert recording.one("SELECT count(*) FROM trace.counters WHERE name = 'steps_per_second' AND value > 0") == 1
    assert recording.column(MARKS) == []


def test_a_version_that_was_not_tested_is_left_alone_and_noted(package, supervise):
    package("transformers", "9.0.1", trainer=TRAINER, trainer_callback=CALLBACK)
    recording = supervise(program("assert type(Trainer.training_step) is type(log) and trainer.training_step(None, 1) == 2"))
    assert recording.query(PHASES).rows() == []
    assert recording.column(MARKS) == ["phases and metrics are not recorded: transformers 9.0.1 was not tested; 5.x were"]
    assert "9.0.1" not in recording.stderr


def test_what_a_version_lacks_is_noted_and_the_rest_recorded(package, supervise):
    package("transformers", "5.1.0", trainer=TRAINER, trainer_callback=CALLBACK)
    recording = supervise(program("trainer.evaluate()"))
    assert recording.column("SELECT name FROM trace.regions WHERE file LIKE '%/transformers/%'") == ["evaluation"]
    assert recording.column(MARKS) == ['transformers 5.1.0 has no Trainer.predict: "prediction" is not recorded']


def test_an_error_has_the_frames_that_it_has_without(transformers, supervise, plain):
    code = program("""
        import traceback
        try:
            trainer.training_step(None, "bad")
        except KeyError as error:
            print(*(frame.name for frame in traceback.extract_tb(error.__traceback__)))
    """)
    assert supervise(code).stdout == plain(code).stdout == "<module> training_step\n"


def test_metrics_that_cannot_be_read_do_not_reach_the_trainer(transformers, supervise):
    recording = supervise(program("""
        class Device: type = "cuda"
        class OnDevice:
            device, dtype = Device, "float32"
            def numel(self): return 1
            def __float__(self): raise SystemError("this would wait for the device")
        class Broken:
            @property
            def device(self): raise RuntimeError("broken")
        assert log(there=OnDevice(), loss=0.5) == ["loss", "there"]
        assert log(broken=Broken()) == ["broken"]
        for number in range(300):
            log(**{f"sample {number}": 1})
    """))
    assert recording.one("SELECT count(DISTINCT name) FROM trace.counters WHERE name NOT LIKE 'steps_per%'") == 256
    assert recording.one("SELECT value FROM trace.counters WHERE name = 'loss'") == 0.5


def test_methods_keep_their_signatures_names_and_pickles(transformers, supervise):
    supervise(program("""
        import copy, inspect, pickle
        class Mine(Trainer):
            def training_step(self, model, inputs, number=None):
                return super().training_step(model, inputs) + 1
        assert str(inspect.signature(Trainer.training_step)) == "(self, model, inputs, number=None)"
        assert "inputs * 2" in inspect.getsource(Trainer.training_step)
        assert pickle.loads(pickle.dumps(Trainer.training_step)) is Trainer.training_step
        assert copy.deepcopy(Trainer.evaluate) is Trainer.evaluate and Trainer.evaluate.__qualname__ == "Trainer.evaluate"
        assert Mine().training_step(None, 3) == 7
    """))


def test_a_context_manager_stays_one(package, supervise):
    package("accelerate", "1.15.0", accelerator=textwrap.dedent("""
        from contextlib import contextmanager

        class Accelerator:
            @contextmanager
            def accumulate(self, *models):
                yield models
    """))
    recording = supervise("""
        import time
        from accelerate.accelerator import Accelerator
        with Accelerator().accumulate(1, 2) as models:
            time.sleep(0.01)
        assert models == (1, 2)
        try:
            with Accelerator().accumulate():
                raise KeyError("mine")
        except KeyError:
            pass
        @Accelerator().accumulate()
        def decorated(): return 5
        assert decorated() == decorated() == 5
    """)
    (row,) = recording.query("SELECT count, max_ns FROM trace.regions WHERE name = 'training step'")
    assert row["count"] == 4 and row["max_ns"] >= 10_000_000


def test_a_recording_from_inside_has_them_and_gives_the_methods_back(transformers, plain):
    done = plain(program("""
        before = dict(vars(Trainer))
        with kymo.recording("r.kymosnap", torch=True) as r:
            trainer.training_step(None, 1)
        assert dict(vars(Trainer)) == before
        print([row["name"] for row in r.query("SELECT name FROM trace.regions WHERE file LIKE '%/transformers/%'")])
    """))
    assert done.stdout == "['training step']\n"


def test_a_trainer_that_a_package_asks_for_but_does_not_import_is_left_alone(transformers, supervise):
    supervise("""
        import importlib.util, sys
        assert importlib.util.find_spec("transformers.trainer") is not None
        assert "transformers.trainer" not in sys.modules
        import transformers.trainer
        assert type(transformers.trainer.Trainer.evaluate).__name__ == "Function"
        assert "exec_module" not in vars(transformers.trainer.__spec__.loader)
    """)
