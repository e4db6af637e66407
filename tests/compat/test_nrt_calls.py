"""libkymo_nrt.so: calls of unmodified programs to the Neuron runtime. The runtime here is a stand-in with its symbols."""
import pytest
from marked_home import Marked
from programs import BUILD, HERE, said

ALL = "0 0 2 0 0 0 0 5 3 0 written 0 0\n"


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    """A folder with libnrt.so.1."""
    folder = tmp_path_factory.mktemp("runtime")
    said(["cc", "-O2", "-shared", "-fPIC", "-Wl,-soname,libnrt.so.1", HERE / "nrt_runtime.c", "-o", folder / "libnrt.so.1"])
    (folder / "libnrt.so").symlink_to("libnrt.so.1")
    return folder


@pytest.fixture(scope="module")
def program(runtime):
    said(["cc", "-O2", "-Wall", "-Wextra", "-Werror", HERE / "nrt_calls.c", "-o", runtime / "calls", f"-L{runtime}", "-lnrt", "-ldl"])
    return runtime / "calls"


@pytest.fixture
def home(tmp_path, runtime):
    home = Marked(tmp_path, "LD_PRELOAD")
    home.env["LD_LIBRARY_PATH"] = str(runtime)
    return home


def operations(home):
    return home.rows("SELECT kind, name, model, queue, bytes, status FROM device.ops WHERE kind != 'wait' ORDER BY start_ns")


def row(kind, name, model=None, queue="core 0", moved=0, status=0):
    return {"kind": kind, "name": name, "model": model, "queue": queue, "bytes": moved, "status": status}


FIRST, SECOND = "model 1 (100 bytes)", "model 2 (13 bytes)"


def test_calls_are_operations_of_their_core_and_model(home, program):
    assert home.record(program, options=["--device"]) == ALL
    assert operations(home) == [
        row("write", "nrt_load", FIRST, "core 2", 100), row("write", "nrt_load", SECOND, moved=13),
        row("write", "nrt_load", status=2), row("write", "nrt_tensor_write", moved=8),
        row("execution", "nrt_execute", FIRST, "core 2"), row("execution", "nrt_execute", SECOND, status=5),
        row("execution", "nrt_execute_repeat", FIRST, "core 2", status=3), row("read", "nrt_tensor_read", moved=8),
        row("other", "nrt_unload", FIRST, "core 2"), row("other", "nrt_unload", SECOND)]
    assert home.rows("SELECT kind, bytes, live_bytes FROM device.memory ORDER BY ts_ns") == [
        {"kind": "allocation", "bytes": 64, "live_bytes": 64}, {"kind": "free", "bytes": 64, "live_bytes": 0}]
    assert home.rows("SELECT DISTINCT source FROM trace.zones WHERE name = 'nrt_execute'") == [{"source": "device"}]


HOST = """
#include <dlfcn.h>
int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : 0;
    int (*run)(void) = 0;

    if (library)
        *(void **)&run = dlsym(library, "run");
    return run ? run() : 4;
}
"""


def test_a_library_that_was_loaded_privately_is_recorded(home, runtime, program):
    plugin = runtime / "plugin.so"
    said(["cc", "-O2", "-shared", "-fPIC", "-DNRT_PLUGIN", HERE / "nrt_calls.c", "-o", plugin, f"-L{runtime}", "-lnrt"])
    (runtime / "host.c").write_text(HOST)
    host = runtime / "host"
    said(["cc", "-O2", runtime / "host.c", "-o", host, "-ldl"])
    assert home.record(host, plugin, options=["--device"]) == ALL
    assert len(operations(home)) == 10


def test_without_device_nothing_is_preloaded(home, program):
    assert home.record(program) == ALL
    assert operations(home) == []
    assert home.record("sh", "-c", "echo ${LD_PRELOAD-none}", options=["--force"]) == "none\n"


def test_a_preload_of_the_user_stays(home, tmp_path):
    own = tmp_path / "own.so"
    said(["cc", "-shared", "-fPIC", "-x", "c", "/dev/null", "-o", own])
    assert home.record("sh", "-c", "echo $LD_PRELOAD", options=["--device"],
                       LD_PRELOAD=str(own)) == f"{BUILD}/libkymo_nrt.so:{own}\n"


def test_where_the_runtime_is_absent_nothing_is_preloaded(home):
    home.env.pop("LD_LIBRARY_PATH")
    assert home.record("sh", "-c", "echo ${LD_PRELOAD-none}", options=["--device"]) == "none\n"


FAKE = """
#include <nrt/nrt.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    static const char text[] = "kymo-fake-model small\\nmatmul 100\\n";
    nrt_model_t *model = NULL;

    return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") || nrt_load(text, strlen(text), 0, 1, &model) ||
        nrt_execute(model, NULL, NULL) || nrt_unload(model);
}
"""


def test_kymo_s_own_runtime_records_its_calls_once(home, tmp_path):
    (tmp_path / "own.c").write_text(FAKE)
    said(["cc", "-O2", f"-I{HERE.parents[1]}/include", f"-I{HERE.parents[1]}/compat/include", tmp_path / "own.c",
          "-o", tmp_path / "own", f"-L{BUILD}/kymo-nrt", "-lnrt", f"-L{BUILD}", "-lkymo", f"-Wl,-rpath,{BUILD}"])
    home.record(tmp_path / "own", options=["--device"], LD_PRELOAD=str(BUILD / "libkymo_nrt.so"))
    assert home.rows("SELECT kind, name, model FROM device.ops ORDER BY ALL") == [
        {"kind": "execution", "name": "small", "model": "small"}, {"kind": "kernel", "name": "matmul", "model": "small"}]
