"""Events of an accelerator, if the program uses one. Nothing here initialises a device or imports torch."""
from __future__ import annotations

import sys
import threading
from typing import Any

# Modules of torch with events and streams, and a check whether torch was built for the device.
_DEVICES: dict[str, Any] = {
    "cuda": lambda torch, api: bool(torch.version.cuda or getattr(torch.version, "hip", None)),
    "xpu": lambda torch, api: bool(getattr(api, "_is_compiled", bool)()),
}


def in_use() -> tuple[str, Any] | None:
    """The device that the program uses, with its torch module; None: none yet."""
    for name, api in _built() or ():
        if api.is_initialized():
            return name, api
    return None


def _built() -> list[tuple[str, Any]] | None:
    """Devices that torch was built for; None while torch is not imported."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "version"):
        return None
    apis = [(name, getattr(torch, name, None), is_built) for name, is_built in _DEVICES.items()]
    return [(name, api) for name, api, is_built in apis if api is not None and is_built(torch, api)]


class Events:
    """The clock of a timer: pairs of events on the current stream of the device."""

    def __init__(self, synchronize: bool) -> None:
        self.synchronize = synchronize
        self.name = ""
        self._api: Any = None

    def begin(self) -> Any:
        """The start event; None: no device is in use yet; NotImplemented: there is no device."""
        if self._api is None:
            built = _built()
            if built == []:
                return NotImplemented
            found = in_use()
            if found is None:
                return None
            self.name, self._api = found
        if self.synchronize:
            self._api.synchronize()
        return self.end()

    def end(self) -> Any:
        event = self._api.Event(enable_timing=True)
        event.record()
        return event

    def settle(self, pending: list[Any], wait: bool) -> list[tuple[float, int, Any]]:
        """Removes finished measurements from `pending`: (ms, start on the host, parent) of each."""
        done = []
        while pending:
            begun, ended, start, parent = pending[0]
            if wait:
                ended.synchronize()
            elif not ended.query():
                break
            del pending[0]
            done.append((begun.elapsed_time(ended), start, parent))
        return done


def thread_name() -> str | None:
    """The name threading has for this thread, without creating a thread object."""
    known = threading._active.get(threading.get_ident())  # type: ignore[attr-defined]
    return known.name if known is not None else None
