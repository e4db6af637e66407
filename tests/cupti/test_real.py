"""The decoder with CUPTI's own headers and its own libcupti, of each version that is installed. They need no driver for this."""
import pytest
from conftest import MISSING, ROOT, VERSIONS

if not VERSIONS:
    pytest.skip(MISSING, allow_module_level=True)

EACH = pytest.mark.parametrize("headers", VERSIONS, ids=lambda headers: headers.name)

@EACH
def test_the_layout_of_records_is_that_of_the_headers(lab, headers):
    lab.compile(f"layout-{headers.name}", "layout.c", headers=headers)  # its assertions are the compiler's


@pytest.fixture(scope="session")
def decoder(lab):
    """A program of each version, with the objects of build/libkymo_cupti.so in it."""
    objects, made = sorted(str(path) for path in (ROOT / "build/libkymo_cupti.so.p").glob("*.o")), {}

    def make(headers):
        if headers.name not in made:
            made[headers.name] = lab.compile(
                f"real-{headers.name}", "real.c", "-D_GNU_SOURCE", *objects, f"-L{ROOT}/build", "-lkymo", "-lpthread", "-ldl",
                f"-Wl,-rpath,{ROOT}/build", headers=headers)
        return made[headers.name]
    return make


@EACH
def test_the_real_library_walks_records_and_each_becomes_a_row(lab, decoder, headers):
    done, recording = lab.record(f"real-{headers.name}", decoder(headers), headers.library)
    assert (done.returncode, done.stderr) == (0, "")
    if done.stdout == "cuptiActivityGetNextRecord returned 999\n":
        pytest.skip("this libcupti walks no records without a driver (13.4 does not)")
    assert done.stdout == ""
    assert lab.rows(recording, "SELECT kind, name, queue, count(*), sum(bytes)::BIGINT, count(start_ns) FROM device.ops GROUP BY ALL "
                    "ORDER BY 1, 2") == [
        ("copy", "Memcpy PtoP (Device -> Device)", "stream 8", 100, 3200, 100), ("execution", "execution", "stream 7", 100, 0, 100),
        ("fill", "Memset (Device)", "stream 7", 100, 1600, 100), ("kernel", "gemm(float*, float*, int)", "stream 7", 100, 0, 100),
        ("write", "Memcpy HtoD (Pinned -> Device)", "stream 7", 100, 6400, 100)]
    assert lab.rows(recording, "SELECT count(*) FROM device.waits") == [(100,)]
    assert lab.rows(recording, "SELECT max(live_bytes) FROM device.memory") == [(800,)]


@EACH
@pytest.mark.parametrize("valid", [3, 5000])
def test_a_torn_buffer_ends_where_its_bytes_end(lab, decoder, headers, valid):
    done, recording = lab.record(f"torn-{headers.name}-{valid}", decoder(headers), headers.library, valid)
    assert (done.returncode, done.stderr) == (0, "")
    assert lab.rows(recording, "SELECT count(*) < 60 FROM device.ops") == [(True,)]
