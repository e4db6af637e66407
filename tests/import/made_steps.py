"""Traces of one step or a few with known dependencies: what the critical path and the findings have to say about them is known.

Times are in microseconds; a step has a thread, launches and streams as torch.profiler writes them.
"""
import json

BASE_NS = 1_700_000_000_000_000_000
PID = 4711


class Made:
    """A trace of one rank. host() and python() are zones of the main thread; kernel() and copy() launch."""

    def __init__(self, rank=0, ranks=1):
        self.rank, self.ranks = rank, ranks
        self.pid = PID + rank
        self.correlation = 0
        self.events = []

    def add(self, cat, name, start, dur, tid=None, pid=None, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "pid": self.pid if pid is None else pid,
                            "tid": self.pid if tid is None else tid, "ts": start, "dur": dur, "args": args})

    def step(self, number, start, end):
        self.add("user_annotation", f"ProfilerStep#{number}", start, end - start)

    def host(self, name, start, end, tid=None):
        self.add("cpu_op", name, start, end - start, tid, **{"External id": 0})

    def python(self, name, start, end):
        self.add("python_function", name, start, end - start, **{"Python id": len(self.events)})

    def kernel(self, name, at, start, dur, stream=7, call="cudaLaunchKernel", call_us=5, cat="kernel", tid=None, **args):
        self.correlation += 1
        self.add("cuda_runtime", call, at, call_us, tid, correlation=self.correlation)
        self.add(cat, name, start, dur, stream, 0, device=0, context=1, stream=stream, correlation=self.correlation, **args)

    def copy(self, name, at, start, dur, call_us, nbytes=1 << 20, **args):
        self.kernel(name, at, start, dur, call="cudaMemcpyAsync", call_us=call_us, cat="gpu_memcpy", bytes=nbytes, **args)

    def sync(self, start, end, call="cudaStreamSynchronize"):
        self.correlation += 1
        self.add("cuda_runtime", call, start, end - start, correlation=self.correlation)

    def all_reduce(self, at, start, dur, stream=20):
        args = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 1 << 20, "Group size": self.ranks,
                "Process Group Name": "0"}
        self.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", at, start, dur, stream, **args)

    def write(self, path):
        path.write_text(json.dumps({
            "schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": self.ranks},
            "traceEvents": self.events, "traceName": "made", "baseTimeNanoseconds": BASE_NS}))
        return path
