"""kymo.profiler.otel: spans of OpenTelemetry leave marks."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
KYMO = pathlib.Path(os.environ.get("KYMO_BIN", ROOT / "build/kymo")).resolve()

PROGRAM = """
import kymo.profiler.otel

class Context:
    trace_id, span_id, trace_flags = 0x4bf92f3577b34da6a3ce929d0e0e4736, 0xf067aa0ba902b7, 1

class Span:
    name = "GET /items"
    def get_span_context(self):
        return Context()

class Broken:
    def get_span_context(self):
        raise RuntimeError

processor = kymo.profiler.otel.SpanProcessor()
for span in (Span(), Broken(), None):
    processor.on_start(span, parent_context=None)
    processor._on_ending(span)
    processor.on_end(span)
assert processor.force_flush()
processor.shutdown()
"""

SDK = """
from opentelemetry.sdk.trace import TracerProvider
import kymo.profiler.otel
provider = TracerProvider()
provider.add_span_processor(kymo.profiler.otel.SpanProcessor())
with provider.get_tracer("t").start_as_current_span("GET /items") as span:
    print(f"{span.get_span_context().trace_id:032x}-{span.get_span_context().span_id:016x}")
provider.shutdown()
"""


def run(tmp_path, program):
    env = {**os.environ, "KYMO_DIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    tmp_path.chmod(0o700)
    rec = tmp_path / "rec"
    done = subprocess.run([KYMO, "run", "-q", "-o", rec, "--", sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = subprocess.run([KYMO, "query", rec, "SELECT text FROM trace.marks WHERE name = 'otel.span'", "-f", "json"], env=env,
                           capture_output=True, text=True)
    return [row["text"] for row in json.loads(found.stdout)], done.stdout


def test_a_trace_id_finds_its_moment(tmp_path):
    marks, _ = run(tmp_path, PROGRAM)
    assert marks == ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 GET /items"]


def test_the_sdk_itself_calls_it(tmp_path):
    pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")
    marks, said = run(tmp_path, SDK)
    assert marks == [f"00-{said.strip()}-01 GET /items"]
