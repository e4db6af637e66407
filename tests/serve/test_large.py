"""What a page of a large imported trace shows first: nothing that is cheap waits for what is not."""
import pathlib
import sys

import pytest

from conftest import Server, make_home, run_kymo

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "import"))
import make_trace  # noqa: E402


@pytest.fixture
def imported(tmp_path):
    """1,000 steps, 41,000 operations, and a critical path with more rows."""
    home = make_home(tmp_path)
    make_trace.write(home / "trace.json", 1000)
    status, _, err = run_kymo(home, "import", "-q", home / "trace.json", "-o", home / "run")
    assert status == 0, err
    return home


def names_of(zones):
    return [lane["name"] for lane in zones.head["lanes"]]


def test_operations_are_shown_before_the_critical_path(imported):
    """The path takes ten times as long."""
    server = Server(imported, imported / "run")
    try:
        seen = [server.zones(width=64, partial=1)]
        while seen[-1].head["indexed"] < 1:
            seen.append(server.zones(width=64, partial=1))
        early = [zones for zones in seen if "critical path" not in names_of(zones)]
        assert "thread 4711" in names_of(seen[0])
        assert any("stream 7, GPU 0" in names_of(zones) and zones.head["indexed"] < 1 for zones in early)
        assert {"critical path", "collectives", "stream 7, GPU 0", "stream 20, GPU 0"} <= set(names_of(seen[-1]))
        whole = server.zones(width=64)
        assert sorted(names_of(whole)) == sorted(names_of(seen[-1]))
    finally:
        assert server.stop() == 0


def test_a_part_of_the_document_comes_before_the_findings(imported):
    server = Server(imported, imported / "run")
    try:
        first = server.get("/api/run", partial=1)
        assert first["partial"] and "verdicts" not in first and "launches" not in first
        assert {"label": "Device busy", "value": "…", "note": "is being read"} in first["figures"]
        whole = server.get("/api/run")
        assert "partial" not in whole and whole["verdicts"] and whole["launches"] and whole["breakdown"]
        assert all(first[name] == whole[name] for name in ("regions", "steps", "step_facts", "losses", "modules", "slowest"))
        again = server.get("/api/run", partial=1)
        assert "partial" not in again and again["verdicts"] == whole["verdicts"]
    finally:
        assert server.stop() == 0
