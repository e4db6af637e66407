"""Makes a trace as torch.profiler writes it on a machine with GPUs: a training loop with modules, operators, launches, kernels,
copies, collectives, memory and flows, whose answers are known. Tests and benchmarks use it where no GPU is.

    tests/import/make_trace.py FILE [--megabytes N] [--rank R --ranks N]
"""
import argparse
import gzip
import json

BASE_NS = 1_700_000_000_000_000_000
STEP_NS = 10_000_000
LAYERS = 20
PID, MAIN, BACKWARD = 4711, 4711, 4800


def us(ns):
    """Microseconds with three decimals, exact."""
    return f"{ns // 1000}.{ns % 1000:03d}"


class Trace:
    def __init__(self, rank=0, ranks=1):
        self.rank, self.ranks = rank, ranks
        self.correlation = self.external = self.sequence = 0
        self.events = []

    def add(self, cat, name, start, dur, tid=MAIN, pid=PID, **args):
        text = ", ".join(f'"{key}": {json.dumps(value)}' for key, value in args.items())
        self.events.append(f'  {{\n    "ph": "X", "cat": "{cat}", "name": {json.dumps(name)}, "pid": {pid}, "tid": {tid},\n'
                           f'    "ts": {us(start)}, "dur": {us(dur)},\n    "args": {{\n      {text}\n    }}\n  }}')

    def op(self, name, start, dur, tid=MAIN, **args):
        self.external += 1
        self.add("cpu_op", name, start, dur, tid, **{"External id": self.external, "Record function id": 0,
                 "Concrete Inputs": ["", "", ""], "Input type": ["float", "float", "float"], "Input Dims": [[64, 256], [256, 256]],
                 "Ev Idx": self.external, **args})

    def flow(self, ph, ts, tid, pid=PID):
        end = ', "bp": "e"' if ph == "f" else ""
        self.events.append(f'  {{\n    "ph": "{ph}", "id": {self.correlation}, "pid": {pid}, "tid": {tid}, "ts": {us(ts)},\n'
                           f'    "cat": "ac2g", "name": "ac2g"{end}\n  }}')

    def launch(self, kernel, at, start, dur, tid=MAIN, stream=7, call="cudaLaunchKernel", cat="kernel", **args):
        self.correlation += 1
        both = {"External id": self.external, "correlation": self.correlation}
        self.add("cuda_runtime", call, at, 5_000, tid, cbid=211, **both)
        self.flow("s", at, tid)
        self.add(cat, kernel, start, dur, stream, 0, device=0, context=1, stream=stream, **both, **args)
        self.flow("f", start, stream, 0)


def kernel_arguments():
    return {"queued": 0, "registers per thread": 96, "shared memory": 49152, "grid": [64, 1, 1], "block": [256, 1, 1],
            "est. achieved occupancy %": 50}


def add_step(trace, number):
    """Forward 0 to 4 ms, backward 4 to 8 ms, all_reduce from 6 to 9 ms on its own stream, a wait from 8 to 9.5 ms."""
    at = number * STEP_NS
    first = trace.sequence
    trace.add("user_annotation", f"ProfilerStep#{number}", at, STEP_NS, **{"External id": 0})
    trace.add("python_function", "train.py(12): step", at + 1_000, STEP_NS - 2_000, **{"Python id": number})
    trace.add("python_function", "nn.Module: Net_0", at + 10_000, 3_900_000, **{"Python module id": 0})
    trace.launch("Memcpy HtoD (Pageable -> Device)", at + 12_000, at + 20_000, 60_000, call="cudaMemcpyAsync", cat="gpu_memcpy",
                 bytes=65536)
    for layer in range(LAYERS):
        start = at + 100_000 + layer * 190_000
        trace.add("python_function", f"nn.Module: Linear_{layer}", start, 180_000, **{"Python module id": layer + 1})
        trace.op("aten::linear", start + 10_000, 100_000, **{"Sequence number": trace.sequence, "Fwd thread id": 0})
        trace.op("aten::addmm", start + 20_000, 80_000, **{"Sequence number": trace.sequence, "Fwd thread id": 0})
        trace.launch("ampere_sgemm_128x64_tn", start + 30_000, start + 60_000, 90_000, **kernel_arguments())
        trace.sequence += 1
    for layer in reversed(range(LAYERS)):
        start = at + 4_000_000 + (LAYERS - 1 - layer) * 190_000
        trace.op("autograd::engine::evaluate_function: AddmmBackward0", start, 150_000, BACKWARD,
                 **{"Sequence number": first + layer, "Fwd thread id": 1})
        trace.op("AddmmBackward0", start + 10_000, 100_000, BACKWARD,
                 **{"Sequence number": first + layer, "Fwd thread id": 1})
        trace.launch("ampere_sgemm_128x64_nt", start + 20_000, start + 40_000, 120_000, BACKWARD, **kernel_arguments())
        trace.events.append(f'  {{\n    "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": {PID}, '
                            f'"tid": {BACKWARD}, "ts": {us(start)},\n    "args": {{\n      "Total Allocated": {1 << 20}, '
                            f'"Bytes": {-4096 if layer % 2 else 4096}, "Device Id": 0, "Device Type": 1\n    }}\n  }}')
    trace.op("record_param_comms", at + 5_900_000, 60_000, BACKWARD, **{"Collective name": "allreduce", "dtype": "Float",
             "In msg nelems": 1 << 20, "Group size": trace.ranks, "Process Group Name": "0"})
    trace.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", at + 5_910_000,
                 at + 6_000_000, 3_000_000, BACKWARD, stream=20, **{"Collective name": "allreduce", "dtype": "Float",
                 "In msg nelems": 1 << 20, "Group size": trace.ranks, "Process Group Name": "0"})
    trace.correlation += 1
    trace.add("cuda_runtime", "cudaDeviceSynchronize", at + 8_000_000, 1_500_000, **{"correlation": trace.correlation})


def header(trace):
    return (f'{{\n  "schemaVersion": 1,\n  "distributedInfo": {{"backend": "nccl", "rank": {trace.rank}, '
            f'"world_size": {trace.ranks}}},\n  "environment": {{"TOKEN": "secret"}},\n  "traceEvents": [\n')


def write(path, steps=3, rank=0, ranks=1, megabytes=0):
    """Steps, or as many as make that many megabytes. Returns the number of events."""
    trace, count, written, number = Trace(rank, ranks), 0, 0, 0
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "wt") as out:
        out.write(header(trace))
        while number < steps or written < megabytes << 20:
            add_step(trace, number)
            text = ",\n".join(trace.events)
            out.write((",\n" if number else "") + text)
            count += len(trace.events)
            written += len(text)
            trace.events.clear()
            number += 1
        out.write(f'\n  ],\n  "traceName": "made",\n  "baseTimeNanoseconds": {BASE_NS}\n}}\n')
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--megabytes", type=int, default=0)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    args = parser.parse_args()
    print(write(args.file, 3, args.rank, args.ranks, args.megabytes), "events")


if __name__ == "__main__":
    main()
