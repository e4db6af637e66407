"""Modules of PyTorch: waits for torch, hooks it, and reports what cannot be recorded.

arm() is called when Python starts, also in a Python without a kymo package: this file is loaded by its path and imports
only modules that are already imported. Failures here never reach the program.
"""
import os
import sys
from _imp import _fix_co_filename  # type: ignore[attr-defined]

# Tools that trace this program take "<frozen …>" for a part of Python, as they do importlib: they neither count nor
# report our lines.
_fix_co_filename(sys._getframe().f_code, "<frozen kymo._torch_auto>")

TYPE_CHECKING = False  # importing typing would add milliseconds to each start of Python
COLLECTIVES_TESTED = ("2.13.",)  # versions of torch, as torch.__version__ begins
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_waiter: "_Waiter | None" = None


def arm() -> None:
    """Hooks torch now, or as soon as it is imported."""
    global _waiter
    if getattr(sys.modules.get("torch"), "nn", None) is not None:
        _attempt(enable)
    elif _waiter is None:
        disarm()
        _waiter = _Waiter()
        sys.meta_path.insert(0, _waiter)


def disarm() -> None:
    global _waiter
    for finder in list(sys.meta_path):
        if finder is _waiter or _is_early(finder):
            sys.meta_path.remove(finder)
    _waiter = None


def _is_early(finder: object) -> bool:
    """Is it that of the extension which `kymo run` injects, and which waits before this file is loaded?"""
    return (type(finder).__module__, type(finder).__name__) == ("kymo._inject", "TorchWaiter")


def enable() -> None:
    """Starts recording modules; torch must be importable. Raises if nothing can be recorded."""
    import torch

    disarm()
    c = extension()
    lacking = c.hook(torch.nn.Module.__call__, type(torch.autograd.Variable._execution_engine).run_backward)
    if torch.version.cuda or getattr(torch.version, "hip", None):
        c.memory(_memory)
    _accelerator(c, torch)
    if not lacking:
        lacking = _callback(c, torch.__version__)
    _peak(c, torch)
    lacking += _scopes(c, torch)
    lacking += _collectives(c, torch.__version__)
    for sentence in lacking:
        c.mark(sentence)
        _say(sentence)


def _collectives(c: "Any", version: str) -> "list[str]":
    """Hooks the collectives of versions that were tested: their functions take and return C++ objects."""
    if version.startswith(COLLECTIVES_TESTED) and c.hook_collectives():
        return []
    if os.environ.get("WORLD_SIZE", "1") in ("", "0", "1"):
        return []
    return [f"collectives of torch.distributed are not recorded: torch {version} was not tested; torch 2.13 was"]


def disable() -> None:
    """Removes all hooks."""
    disarm()
    if "kymo._torch" in sys.modules:
        extension().unhook()


def extension() -> "Any":
    """kymo._torch for this version of Python, loaded by its path."""
    if "kymo._torch" in sys.modules:
        return sys.modules["kymo._torch"]
    from _frozen_importlib import _load  # type: ignore[attr-defined]
    from _frozen_importlib_external import spec_from_file_location
    from _imp import extension_suffixes

    for suffix in extension_suffixes():
        path = _beside("_torch" + suffix)
        if os.path.exists(path):
            return _load(spec_from_file_location("kymo._torch", path))
    raise ImportError(f"this kymo has no extension for {sys.executable}; build kymo with it: see CONTRIBUTING.md")


class _Waiter:
    """The first of sys.meta_path until torch is imported; finds torch through the others and watches its loader."""

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name != "torch":
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                _attempt(lambda: _watch(spec.loader))  # noqa: B023
                return spec
        return None


def _watch(loader: "Any") -> None:
    """Hooks torch after this loader has executed it; the loader itself is restored."""
    run = loader.exec_module

    def exec_module(module: "Any") -> None:
        del loader.exec_module
        run(module)
        _attempt(enable)

    loader.exec_module = exec_module


# --- builds of torch ------------------------------------------------------------------------------------------

def _callback(c: "Any", version: str) -> "list[str]":
    """Enables backward rows if this build is known to support them; returns what is missing."""
    if c.known_callbacks():
        return _operators_of(c, version)
    build, _ = c.build()
    if not build:
        return [f"backward of modules is not recorded: torch {version} has no build id"]
    answer = _read(_answer_file(build))
    if not answer:
        _try(c, build)
        return [f"backward of modules is recorded later: torch {version} is an unknown build and is first tested in "
                f"another process"]
    return _use(c, answer, version)


def _wants_operators() -> bool:
    return os.environ.get("KYMO_TORCH_OPS", "") not in ("", "0", "off")


def _operators_of(c: "Any", version: str) -> "list[str]":
    """Finds where a known build has the inputs of operators. kymo config may ask for them later."""
    import torch

    act, many = known_operators(torch)
    wrong = c.operators(act, many, 100, False)
    return [f"operators are not recorded: torch {version}: {wrong}"] if wrong and _wants_operators() else []


def known_operators(torch: "Any") -> "tuple[Callable[[], None], Callable[[], None]]":
    """Operators whose inputs kymo._torch expects (op_inputs.c), and 100 of them. They compute nothing and start no thread."""
    tensors = [torch.empty(sizes, dtype=dtype, device="cpu") for sizes, dtype in (
        ((3, 5, 7), torch.float32), ((2, 1, 1, 3, 1, 2, 1), torch.int64), ((4,), torch.bfloat16), ((2, 2), torch.bool))]

    def act() -> None:
        for tensor in tensors:
            tensor.as_strided((2, 1), (1, 3), 1)
        tensors[0].expand(3, 5, 7)

    def many() -> None:
        for _ in range(100):
            tensors[0].as_strided((2, 1), (1, 3), 1)

    return act, many


def _scopes(c: "Any", torch: "Any") -> "list[str]":
    """Enables optimizer steps and waits for data; returns what is missing."""
    try:
        found = c.hook_scopes(*_operators(torch))
    except (AttributeError, RuntimeError, ValueError):
        found = False
    return [] if found else ["optimizer steps and waits for data are not recorded: unsupported operators of record_function"]


def _operators(torch: "Any") -> "tuple[Any, Any]":
    """The two operators that record_function calls; they differ between versions and are read from its code."""
    scope = torch.autograd.profiler.record_function
    (enter,) = {"_record_function_enter_new", "_record_function_enter"}.intersection(scope.__enter__.__code__.co_names)
    leave = torch.ops.profiler._record_function_exit
    if "_RecordFunction" in scope.__exit__.__code__.co_names:
        leave = leave._RecordFunction
    return getattr(torch.ops.profiler, enter)._op, leave._op


def _use(c: "Any", answer: str, version: str) -> "list[str]":
    word, *rest = answer.split(" ", 1)
    try:
        if word == "ok":
            sequence, thread, *layout = map(int, rest[0].split())
            c.callbacks(sequence, thread)
            if layout:
                c.layout(tuple(layout))
            return [] if layout or not _wants_operators() else [
                f"operators are not recorded: the test of torch {version} did not find their inputs"]
    except (ValueError, TypeError):
        pass
    return [f"backward of modules is not recorded: the test of torch {version} failed: {' '.join(rest) or 'no reason given'}"]


def _try(c: "Any", build: str) -> None:
    """Starts the trial; its answer is applied between two forwards after it has ended."""
    file = _answer_file(build)
    os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("KYMO", "PROBING_"))}
    environment.update(KYMO_TORCH_TRIAL=os.pathsep.join(path for path in sys.path if path), OMP_NUM_THREADS="1")

    def ended(status: int) -> None:
        import torch

        answer = _read(file)
        if not answer:
            answer = f"no it ended with {f'signal {status - 128}' if status > 128 else f'status {status}'}"
            _write(file, answer)
        for sentence in _use(c, answer, torch.__version__):
            c.mark(sentence)
            _say(sentence)

    c.trial([sys.executable, _beside("_torch_trial.py"), file],
            [f"{key}={value}" for key, value in environment.items()], ended)


def _answer_file(build: str) -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "kymo", f"torch-{build}")


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(200).strip()
    except (OSError, ValueError):
        return ""


def _write(path: str, text: str) -> None:
    try:
        with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(f"{path}.{os.getpid()}", path)
    except OSError:
        pass


# --- memory of accelerators -----------------------------------------------------------------------------------

def _memory() -> "tuple[int, int, int, int] | None":
    """(device, allocated, peak, reserved) in bytes, in one call; None while the program uses no device."""
    cuda = sys.modules["torch"].cuda
    if not cuda.is_initialized():
        return None
    device = cuda.current_device()
    stats = cuda.memory_stats_as_nested_dict(device)
    allocated, reserved = stats["allocated_bytes"]["all"], stats["reserved_bytes"]["all"]
    return device, allocated["current"], allocated["peak"], reserved["current"]


def _accelerator(c: "Any", torch: "Any") -> None:
    """Enables device times, for a torch that is built for a device. Does not initialise the device."""
    import atexit

    for name in ("cuda", "xpu"):
        device: "Any" = getattr(torch, name, None)
        built = getattr(torch.version, name, None) or name == "cuda" and getattr(torch.version, "hip", None)
        if built and hasattr(device, "is_initialized"):
            c.accelerator(name, device.is_initialized, device.current_stream, _event(device),
                          getattr(device, "is_current_stream_capturing", None))
            atexit.register(c.accelerator, None)
            return


def _event(device: "Any") -> "Callable[[], Any]":
    return lambda: device.Event(enable_timing=True)


# --- what a device can compute ----------------------------------------------------------------------------------

# FLOP/s of dense products as their makers state them, by a word of the device's name and by type; the first that fits.
PEAKS: "tuple[tuple[str, dict[str, float]], ...]" = (
    ("B200", {"bfloat16": 2250e12, "float16": 2250e12, "float32": 80e12}),
    ("H200", {"bfloat16": 989e12, "float16": 989e12, "float32": 67e12}),
    ("H100 PCIe", {"bfloat16": 756e12, "float16": 756e12, "float32": 51e12}),
    ("H100", {"bfloat16": 989e12, "float16": 989e12, "float32": 67e12}),
    ("A100", {"bfloat16": 312e12, "float16": 312e12, "float32": 19.5e12}),
    ("L40S", {"bfloat16": 362e12, "float16": 362e12, "float32": 91.6e12}),
    ("L4", {"bfloat16": 121e12, "float16": 121e12, "float32": 30.3e12}),
    ("V100", {"float16": 125e12, "float32": 15.7e12}),
    ("T4", {"float16": 65e12, "float32": 8.1e12}),
)


def _peak(c: "Any", torch: "Any") -> None:
    """Records the peak that KYMO_PEAK_FLOPS gives or asks to measure, or those that are known of a GPU."""
    word = os.environ.get("KYMO_PEAK_FLOPS", "")
    if word == "measure":
        for dtype, flops in _measured(torch):
            c.peak("cpu", dtype, flops, "measured")
    elif word:
        try:
            c.peak("", "", float(word), "given")
        except ValueError:
            c.mark(f"KYMO_PEAK_FLOPS={word[:40]} is ignored: expected FLOP/s, such as 312e12, or measure")
    elif _wants_operators() and torch.version.cuda:
        name = _gpu_name()
        for dtype, flops in next((peaks for known, peaks in PEAKS if known in name), {}).items():
            c.peak(name, dtype, flops, "known")


def _gpu_name() -> str:
    """Of the first GPU, without initialising it; "": unknown."""
    import glob

    for path in sorted(glob.glob("/proc/driver/nvidia/gpus/*/information")):
        for line in _read(path).splitlines():
            if line.startswith("Model:"):
                return line.split(":", 1)[1].strip()
    return ""


def _measured(torch: "Any") -> "list[tuple[str, float]]":
    """Products of large matrices on this CPU, in another process with as many threads, before the program goes on."""
    import subprocess

    environment = {key: value for key, value in os.environ.items() if not key.startswith(("KYMO", "PROBING_"))}
    environment.update(KYMO_TORCH_TRIAL=os.pathsep.join(path for path in sys.path if path))
    try:
        done = subprocess.run([sys.executable, _beside("_torch_peak.py"), str(torch.get_num_threads())], env=environment,
                              capture_output=True, text=True, timeout=60, check=True)
        return [(dtype, float(flops)) for dtype, flops in map(str.split, done.stdout.splitlines())]
    except (OSError, ValueError, subprocess.SubprocessError):
        return []


# --- helpers --------------------------------------------------------------------------------------------------

def _beside(name: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), name)


def _say(sentence: str) -> None:
    """Prints the sentence if KYMO_VERBOSE=1; the recording has it as a mark in any case."""
    if os.environ.get("KYMO_VERBOSE", "0") not in ("", "0"):
        os.write(2, f"kymo: {sentence}\n".encode(errors="replace"))


def _attempt(act: "Callable[[], object]") -> None:
    try:
        act()
    except Exception as error:
        try:
            os.write(2, f"kymo: torch modules are not recorded: {error}\n".encode(errors="replace"))
        except OSError:
            pass
