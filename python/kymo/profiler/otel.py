"""Spans of OpenTelemetry in the recording: each leaves a mark, so that a trace id finds its moment.

    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    import kymo.profiler.otel

    provider = TracerProvider()
    provider.add_span_processor(kymo.profiler.otel.SpanProcessor())
    trace.set_tracer_provider(provider)

    kymo query latest "FROM trace.marks WHERE name = 'otel.span' AND text LIKE '%TRACE_ID%'"

OpenTelemetry is not imported: the SDK calls the methods by name. Without a recording they do nothing.
"""
from typing import Any, Optional

import kymo

__all__ = ["SpanProcessor"]


class SpanProcessor:
    """A mark otel.span at the start of each span that is sampled: its traceparent, a space and its name."""

    def on_start(self, span: Any, parent_context: Optional[Any] = None) -> None:
        try:
            context = span.get_span_context()
            kymo.mark("otel.span", f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x} {span.name}")
        except Exception:  # the program's spans go on
            pass

    def on_end(self, span: Any) -> None:
        pass

    def _on_ending(self, span: Any) -> None:
        pass

    def shutdown(self) -> None:
        pass

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return True
