"""Trainers of others: waits for their modules, and borrows the few methods that are a phase of a training or log metrics.

arm() is called when Python starts or imports torch or a trainer: this file is loaded by its path and imports only modules
that are already imported. Failures here never reach the program. A borrowed method becomes a kymo.Function of the
original, which is written in C: it has no frame in tracebacks and passes arguments and results on as they are.
"""
import os
import sys
from _imp import _fix_co_filename  # type: ignore[attr-defined]

# Tools that trace this program take "<frozen …>" for a part of Python, as they do importlib: they neither count nor
# report our lines.
_fix_co_filename(sys._getframe().f_code, "<frozen kymo._trainers_auto>")

TYPE_CHECKING = False  # importing typing would add milliseconds to each start of Python
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TESTED = {  # versions of a package, as its __version__ begins
    "transformers": ("5.",),
    "accelerate": ("1.",),
    "lightning": ("2.",),
    "pytorch_lightning": ("2.",),
    "deepspeed": ("0.",),
    "ray": ("2.",),
}
COUNTERS_MAX = 256  # names of metrics; a program may make one for each sample

borrowed: "list[tuple[Any, str, Any, Any]]" = []  # owner, name, original, ours
_waiter: "_Waiter | None" = None
_counters: "set[str]" = set()
_pace: "dict[int, tuple[int, float]]" = {}  # of a trainer: its last known step and when it was


def arm() -> None:
    """Borrows from the trainers that have been imported, and from others as soon as they are."""
    global _waiter
    if _waiter is None:
        _waiter = _Waiter()
        sys.meta_path.insert(0, _waiter)
        for name in WATCHED:
            if name in sys.modules:
                _attempt(name)


def disarm() -> None:
    """Gives everything back that no other tool has replaced meanwhile."""
    global _waiter
    if _waiter in sys.meta_path:
        sys.meta_path.remove(_waiter)
    _waiter = None
    while borrowed:
        owner, name, original, ours = borrowed.pop()
        if vars(owner).get(name) is ours:
            setattr(owner, name, original)


def has(package: str) -> bool:
    """Are methods of that package borrowed? Its callback then has nothing to do."""
    return any(str(getattr(original, "__module__", "")).partition(".")[0] == package for _, _, original, _ in borrowed)


# --- metrics --------------------------------------------------------------------------------------------------

def number(value: "Any") -> "float | None":
    """The value of a number, and of a tensor with one element that is in the host's memory: no device is waited for."""
    if isinstance(value, (int, float)):
        return float(value)
    device = getattr(value, "device", None)
    if device is not None and getattr(device, "type", "cpu" if device == "cpu" else "") != "cpu":
        return None
    size = getattr(value, "numel", None) or getattr(value, "size", None)
    count = size() if callable(size) else size
    return float(value) if count == 1 and hasattr(value, "dtype") else None


def count(metrics: "Any") -> None:
    """Records the numbers of a dict as counters of their names."""
    c = _c()
    for name, value in metrics.items():
        figure = number(value)
        if figure is None or not isinstance(name, str) or (name not in _counters and len(_counters) >= COUNTERS_MAX):
            continue
        _counters.add(name)
        c.record(name, figure)


def pace(trainer: "Any", step: "Any") -> None:
    """Records how many steps a second there were since this trainer told its last step."""
    import time

    if isinstance(step, bool) or not isinstance(step, int):
        return
    now = time.monotonic()
    last, then = _pace.get(id(trainer), (step, now))
    if step > last and now > then:
        _c().record("steps_per_second", (step - last) / (now - then))
    if step != last or id(trainer) not in _pace:
        if len(_pace) > 64:
            _pace.clear()
        _pace[id(trainer)] = step, now


def _rate_of(optimizers: "Any") -> None:
    groups = getattr(optimizers[0], "param_groups", None) if optimizers else None
    if groups:
        count({"learning_rate": groups[0].get("lr")})


# --- what a borrowed method is given ---------------------------------------------------------------------------

def _on_log(handler: "Any", args: "Any", state: "Any", control: "Any", logs: "Any", *rest: "Any", **more: "Any") -> None:
    """transformers.CallbackHandler.on_log"""
    pace(handler, state.global_step)
    count({name: value for name, value in logs.items() if name != "step"})


def _accelerate_log(accelerator: "Any", values: "Any", step: "Any" = None, *rest: "Any", **more: "Any") -> None:
    """accelerate.Accelerator.log"""
    pace(accelerator, step)
    count(values)


def _lightning_log(connector: "Any", metrics: "Any", *rest: "Any", **more: "Any") -> None:
    """lightning's _LoggerConnector.log_metrics; metrics on a device follow when lightning has fetched them."""
    trainer = connector.trainer
    pace(trainer, trainer.fit_loop.epoch_loop._batches_that_stepped)
    _rate_of(trainer.optimizers if trainer.training else None)
    count(metrics)


def _fetched(data: "Any", result: "Any") -> None:
    """convert_tensors_to_scalars() of lightning's logger connector: what was on a device has been fetched by it."""
    if isinstance(data, dict) and isinstance(result, dict):
        count({name: value for name, value in result.items() if number(data.get(name)) is None})


def _deepspeed_events(monitor: "Any", events: "Any", *rest: "Any", **more: "Any") -> None:
    """deepspeed's MonitorMaster.write_events: (name, value, step) each. _deepspeed_step() has the learning rate."""
    count({event[0].rpartition("/")[2]: event[1] for event in events if not event[0].endswith("/lr")})


def _deepspeed_step(engine: "Any", *rest: "Any", **more: "Any") -> None:
    """deepspeed's DeepSpeedEngine.step"""
    pace(engine, engine.global_steps)
    _rate_of([engine.optimizer])


def _ray_report(metrics: "Any", *rest: "Any", **more: "Any") -> None:
    """ray.train.report"""
    count(metrics)


# --- the trainers -----------------------------------------------------------------------------------------------

LIGHTNING = (  # module below the package, class, method, zone, what sees the arguments
    ("pytorch.loops.optimization.automatic", "_AutomaticOptimization", "run", "training step", None),
    ("pytorch.loops.optimization.manual", "_ManualOptimization", "run", "training step", None),
    ("pytorch.loops.evaluation_loop", "_EvaluationLoop", "run", "evaluation", None),
    ("pytorch.loops.prediction_loop", "_PredictionLoop", "run", "prediction", None),
    ("pytorch.loops.fetchers", "_DataFetcher", "__next__", "data", None),
    ("pytorch.trainer.trainer", "Trainer", "save_checkpoint", "checkpoint", None),
    ("pytorch.trainer.connectors.logger_connector.logger_connector", "_LoggerConnector", "log_metrics", "logging", _lightning_log),
)
FETCH = "pytorch.trainer.connectors.logger_connector.logger_connector", "convert_tensors_to_scalars"


def _lightning(package: str, prefix: str) -> "list[tuple[str, str, str, str, Any]]":
    return [(prefix + module[len("pytorch"):], owner, method, zone, act) for module, owner, method, zone, act in LIGHTNING]


# By the module whose import completes them: module, class ("": a function), method, zone, what sees the arguments.
WATCHED: "dict[str, list[tuple[str, str, str, str, Any]]]" = {
    "transformers.trainer": [
        ("transformers.trainer", "Trainer", "training_step", "training step", None),
        ("transformers.trainer", "Trainer", "evaluate", "evaluation", None),
        ("transformers.trainer", "Trainer", "predict", "prediction", None),
        ("transformers.trainer", "Trainer", "get_batch_samples", "data", None),
        ("transformers.trainer", "Trainer", "_save_checkpoint", "checkpoint", None),
        ("transformers.trainer", "Trainer", "_load_from_checkpoint", "checkpoint: load", None),
        ("transformers.trainer_callback", "CallbackHandler", "on_log", "logging", _on_log),
    ],
    "accelerate.accelerator": [
        ("accelerate.accelerator", "Accelerator", "accumulate", "training step", None),
        ("accelerate.accelerator", "Accelerator", "save_state", "checkpoint", None),
        ("accelerate.accelerator", "Accelerator", "load_state", "checkpoint: load", None),
        ("accelerate.accelerator", "Accelerator", "save_model", "checkpoint", None),
        ("accelerate.accelerator", "Accelerator", "gather_for_metrics", "evaluation: gather", None),
        ("accelerate.accelerator", "Accelerator", "log", "logging", _accelerate_log),
    ],
    "lightning.pytorch.trainer.trainer": _lightning("lightning", "lightning.pytorch"),
    "pytorch_lightning.trainer.trainer": _lightning("pytorch_lightning", "pytorch_lightning"),
    "deepspeed.runtime.engine": [
        ("deepspeed.runtime.engine", "DeepSpeedEngine", "backward", "backward", None),
        ("deepspeed.runtime.engine", "DeepSpeedEngine", "step", "optimizer step", _deepspeed_step),
        ("deepspeed.runtime.engine", "DeepSpeedEngine", "save_checkpoint", "checkpoint", None),
        ("deepspeed.runtime.engine", "DeepSpeedEngine", "load_checkpoint", "checkpoint: load", None),
        ("deepspeed.monitor.monitor", "MonitorMaster", "write_events", "logging", _deepspeed_events),
    ],
    "deepspeed.runtime.pipe.engine": [
        ("deepspeed.runtime.pipe.engine", "PipelineEngine", "train_batch", "training step", None),
        ("deepspeed.runtime.pipe.engine", "PipelineEngine", "eval_batch", "evaluation", None),
    ],
    "ray.train._internal.session": [("ray.train._internal.session", "", "report", "logging", _ray_report)],
    "ray.train.v2.api.train_fn_utils": [("ray.train.v2.api.train_fn_utils", "", "report", "logging", _ray_report)],
}


def borrow(watched: str) -> "list[str]":
    """Borrows the methods of a module that has been imported; returns what is not recorded."""
    package = watched.partition(".")[0]
    version = _version(package)
    if not version.startswith(TESTED[package]):
        return [f"phases and metrics are not recorded: {package} {version or 'without a version'} was not tested; "
                f"{', '.join(word + 'x' for word in TESTED[package])} were"]
    lacking = [f"{package} {version} has no {'.'.join(filter(None, row[1:3]))}: \"{row[3]}\" is not recorded"
               for row in WATCHED[watched] if not _borrow_one(*row)]
    if package in ("lightning", "pytorch_lightning"):
        module = sys.modules.get(watched[:-len(".trainer.trainer")] + FETCH[0][len("pytorch"):])
        _replace(module, FETCH[1], lambda function: _after(function, _fetched))
    return lacking


def _version(package: str) -> str:
    version = getattr(sys.modules.get(package), "__version__", None)
    if version is None:  # the package sets it after it has imported this module, as deepspeed does
        import importlib.metadata

        version = importlib.metadata.version(package)
    return str(version)


def _borrow_one(module: str, owner: str, method: str, zone: str, act: "Any") -> bool:
    where = sys.modules.get(module)
    where = getattr(where, owner, None) if owner else where
    return _replace(where, method, lambda function: _zoned(_before(function, act) if act else function, zone))


def _replace(owner: "Any", name: str, make: "Callable[[Any], Any]") -> bool:
    original = vars(owner).get(name) if owner is not None else None
    if type(original) is not type(arm):  # not as it was tested, or another tool has replaced it
        return False
    ours = make(original)
    borrowed.append((owner, name, original, ours))
    setattr(owner, name, ours)
    return True


def _zoned(function: "Any", zone: str) -> "Any":
    """The function, its calls as zones. A context manager made of a generator stays one; its zone is its block."""
    import functools
    import inspect

    c, code = _c(), inspect.unwrap(function).__code__
    region = c.Region(zone, code.co_filename, code.co_firstlineno)
    inner = getattr(function, "__wrapped__", None)
    if not inspect.isgeneratorfunction(inner):
        return functools.update_wrapper(c.Function(region, function), function)
    import contextlib

    def block(*args: "Any", **keywords: "Any") -> "Any":
        with region:
            yield from inner(*args, **keywords)  # type: ignore[misc]

    return contextlib.contextmanager(functools.update_wrapper(block, inner))  # type: ignore[arg-type]


def _before(function: "Any", act: "Callable[..., None]") -> "Any":
    """The function; `act` gets its arguments first."""
    import functools

    @functools.wraps(function)
    def seen(*args: "Any", **keywords: "Any") -> "Any":
        see(act, *args, **keywords)
        return function(*args, **keywords)

    return seen


def _after(function: "Any", act: "Callable[..., None]") -> "Any":
    """The function; `act` gets its first argument and its result."""
    import functools

    @functools.wraps(function)
    def seen(*args: "Any", **keywords: "Any") -> "Any":
        result = function(*args, **keywords)
        see(act, args[0] if args else None, result)
        return result

    return seen


def see(act: "Callable[..., None]", *args: "Any", **keywords: "Any") -> None:
    """Shows act what a trainer logs; nothing that it raises reaches the trainer."""
    try:
        if _c().enabled():
            act(*args, **keywords)
    except Exception:  # a metric of a kind that was not expected: the training goes on
        pass


# --- waiting ----------------------------------------------------------------------------------------------------

class _Waiter:
    """In sys.meta_path while it is armed; finds the modules above through the others and watches their loaders."""

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name not in WATCHED:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                try:
                    _watch(spec.loader, name)
                except Exception:  # a loader that takes no attribute
                    pass
                return spec
        return None


def _watch(loader: "Any", name: str) -> None:
    """Borrows after this loader has executed the module; the loader itself is restored."""
    run = loader.exec_module

    def exec_module(module: "Any") -> None:
        del loader.exec_module
        run(module)
        if _waiter is not None:
            _attempt(name)

    loader.exec_module = exec_module


def _attempt(name: str) -> None:
    """What is not recorded is a mark of the recording, not a message of the program."""
    try:
        try:
            lacking = borrow(name)
        except Exception as error:
            lacking = [f"{name}: phases and metrics are not recorded: {type(error).__name__}: {error}"]
        for sentence in lacking:
            _c().mark("kymo.trainers", sentence)
            if os.environ.get("KYMO_VERBOSE", "0") not in ("", "0"):
                os.write(2, f"kymo: {sentence}\n".encode(errors="replace"))
    except Exception:
        pass


def _c() -> "Any":
    """kymo._kymo for this version of Python."""
    return sys.modules.get("kymo._kymo") or sys.modules["kymo._auto"].extension("_kymo")
