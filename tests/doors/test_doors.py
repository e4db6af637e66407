"""Large packages of others, unmodified, under kymo run: `make doors` installs them. KYMO_DOORS: the folder of their environments."""
import json
import os
import pathlib
import subprocess
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = ROOT / "build/kymo"
DOORS = pathlib.Path(os.environ.get("KYMO_DOORS", ROOT / "build/doors")).resolve()


class Place:
    def __init__(self, folder):
        self.folder, self.recording = folder, folder / "recording"
        self.env = {key: value for key, value in os.environ.items()
                    if not key.startswith("KYMO") and key not in ("INTEL_LIBITTNOTIFY64", "NVTX_INJECTION64_PATH", "OPENCL_LAYERS")}
        self.env.update(KYMO_DIR=str(folder / "live"), XDG_STATE_HOME=str(folder / "state"), KYMO_QUIET="1")

    def run(self, *command, **env):
        return subprocess.run([str(word) for word in command], env={**self.env, **env}, capture_output=True, text=True,
                              timeout=300, stdin=subprocess.DEVNULL, check=False)

    def record(self, group, program, *options, **env):
        """Runs the program with and without kymo: same status and output."""
        path = self.folder / "program.py"
        path.write_text(textwrap.dedent(program))
        python = DOORS / group / "bin/python"
        plain = self.run(python, path, **env)
        assert plain.returncode == 0, plain.stderr
        done = self.run(KYMO, "run", "-q", "--force", "-o", self.recording, *options, "--", python, path, **env)
        assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr

    def rows(self, sql):
        done = self.run(KYMO, "query", "-f", "json", self.recording, sql)
        assert done.returncode == 0, done.stderr
        return [tuple(row.values()) for row in json.loads(done.stdout)]


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_openvino_s_layers_are_tasks(place):
    place.record("itt", """
        import numpy, openvino, openvino.opset13 as ops
        value = ops.parameter([1, 8], numpy.float32)
        model = openvino.Model([ops.matmul(value, ops.constant(numpy.ones((8, 8), numpy.float32)), False, False)], [value])
        compiled = openvino.compile_model(model, "CPU")
        for _ in range(3):
            print(compiled({0: numpy.ones((1, 8), numpy.float32)})[0].sum())
    """)
    assert place.rows("SELECT count(DISTINCT name) >= 4, count(*) >= 9, bool_and(duration_ns >= 0) FROM trace.zones "
                      "WHERE source = 'itt' AND file LIKE 'ov%'") == [(True, True, True)]


def test_opencv_s_functions_are_tasks_on_request(place):
    place.record("itt", """
        import cv2, numpy
        print(cv2.GaussianBlur(numpy.ones((256, 256, 3), numpy.uint8), (5, 5), 1).sum())
    """, KYMO_OPENCV="on")
    assert place.rows("SELECT count(*) > 0 FROM trace.zones WHERE source = 'itt' AND name LIKE '%GaussianBlur%'") == [(True,)]


def test_ittapi_s_tasks(place):
    place.record("itt", """
        import ittapi
        with ittapi.task("python task", domain="tests"):
            pass
    """)
    assert place.rows("SELECT name, file FROM trace.zones WHERE source = 'itt'") == [("python task", "tests")]


def test_dali_s_pipeline_on_the_cpu_has_its_operators(place):
    place.record("nvtx", """
        from nvidia.dali import fn, pipeline_def
        @pipeline_def(batch_size=2, num_threads=1, device_id=None)
        def numbers():
            return fn.random.uniform(range=[0, 1], shape=[4], seed=1)
        pipe = numbers()
        pipe.build()
        print([out.shape() for out in pipe.run()])
    """)
    assert place.rows("SELECT count(DISTINCT name) > 3 FROM trace.zones WHERE source = 'nvtx'") == [(True,)]


def test_nccl_s_calls_are_ranges_with_payloads_without_a_gpu(place):
    place.record("nvtx", """
        import ctypes, glob, site
        (path,) = glob.glob(site.getsitepackages()[0] + "/nvidia/nccl/lib/libnccl.so.2")
        nccl = ctypes.CDLL(path)
        data = (ctypes.c_float * 4)()
        # They fail, since there is no communicator; the range begins before.
        print(nccl.ncclAllReduce(data, data, ctypes.c_size_t(4), 7, 0, None, None) != 0)
        print(nccl.ncclBroadcast(data, data, ctypes.c_size_t(4), 7, 0, None, None) != 0)
    """)
    assert place.rows("SELECT name, file FROM trace.zones WHERE source = 'nvtx' ORDER BY start_ns") == [
        ("ncclAllReduce", "NCCL"), ("ncclBroadcast", "NCCL")]
    texts = dict(place.rows("SELECT name, text FROM trace.zone_text WHERE name LIKE 'nccl%'"))
    assert texts["ncclAllReduce"].startswith("NCCL communicator ID=0 Message size [bytes]=16 Reduction operation=")


JAX = """
    import jax, jax.numpy as jnp
    @jax.jit
    def layer(x):
        return jnp.tanh(x @ x).sum()
    x = jnp.ones((200, 200))
    for i in range(4):
        with jax.profiler.StepTraceAnnotation("train", step_num=i):
            with jax.profiler.TraceAnnotation("forward", size=200):
                layer(x).block_until_ready()
"""


def test_jax_s_annotations_are_zones_and_operations_of_xla_are_in_their_step(place):
    place.record("jax", JAX + "    print('done')\n", "--xla=all")
    assert place.rows("SELECT name, count(*) FROM trace.zones WHERE name IN ('train', 'forward') GROUP BY 1 ORDER BY 1") == [
        ("forward", 4), ("train", 4)]
    assert place.rows("""
        SELECT count(DISTINCT o.step), bool_and(o.start_ns + o.duration_ns <= t.start_ns + t.duration_ns AND o.start_ns >= t.start_ns)
        FROM trace.zones o JOIN trace.zones t ON t.name = 'train' AND t.step = o.step
        WHERE o.thread LIKE '%(XLA)' AND o.file = 'jit_layer'""") == [(4, True)]


def test_a_trace_of_the_program_is_the_same_beside_windows(place):
    place.record("jax", JAX.replace("for i in range(4):", "for i in range(3):") + """
    import glob, tempfile
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.StepTraceAnnotation("traced", step_num=9):
            with jax.profiler.trace(folder):
                layer(x).block_until_ready()
        (path,) = glob.glob(folder + "/**/*.xplane.pb", recursive=True)
        data = jax.profiler.ProfileData.from_file(path)
        ops = [e.name for p in data.planes for l in p.lines for e in l.events if "hlo_op" in dict(e.stats)]
        print(sorted(set(ops)))
    """, "--xla=all")
    assert place.rows("SELECT count(*) FROM trace.marks WHERE name = 'kymo.xla'") == [(1,)]


@pytest.fixture
def intel(tmp_path):
    """The environment in which OpenCL has Intel's CPU runtime alone."""
    library = DOORS / "sycl/lib/libintelocl.so"
    vendors = tmp_path / "vendors"
    vendors.mkdir()
    (vendors / "intel.icd").write_text(f"{library}\n")
    return {"OCL_ICD_VENDORS": str(vendors), "LD_LIBRARY_PATH": str(library.parent)}


def test_sycl_s_kernels_are_operations(place, intel):
    place.record("sycl", """
        import dpctl, dpctl.memory, dpctl.program
        queue = dpctl.SyclQueue("opencl:cpu")
        memory = dpctl.memory.MemoryUSMShared(1 << 20, queue=queue)
        source = "__kernel void twice(__global float *x) { size_t i = get_global_id(0); x[i] = 2 * x[i]; }"
        kernel = dpctl.program.create_program_from_source(queue, source).get_sycl_kernel("twice")
        for _ in range(5):
            queue.submit(kernel, [memory], [1 << 18])
        queue.wait()
        print(queue.sycl_device.name)
    """, "--device", **intel)
    assert place.rows("SELECT kind, name, count(*), bool_and(end_ns >= start_ns AND start_ns >= queued_ns), max(error_ns) < 10000 "
                      "FROM device.ops GROUP BY ALL") == [("kernel", "twice", 5, True, True)]


def test_the_suite_of_devices_passes_on_intel_s_runtime(place, intel):
    chosen = ("times_that_opencl_gives or two_clocks or add_up or wait_of_the_host or threads_contexts "
              "or zone_that_queued or outlives or same_with_and_without")
    done = place.run(ROOT / ".venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "tests/device/test_opencl.py",
                     "-k", chosen, **intel)
    assert done.returncode == 0, done.stdout[-6000:]
