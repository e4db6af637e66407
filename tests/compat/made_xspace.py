"""An XSpace as XLA's profiler returns it, written by hand: a plane of the host with two threads."""


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def event(metadata, offset_ps, duration_ps, *stats):
    return field(4, field(1, metadata) + field(2, offset_ps) + field(3, duration_ps) + b"".join(field(4, stat) for stat in stats))


def entry(number, key, *fields):
    """Of a map."""
    return field(number, field(1, key) + field(2, field(1, key) + b"".join(fields)))


def line(name, timestamp_ns, *events):
    return field(3, field(1, 2**62 + 5) + field(2, name) + field(3, timestamp_ns) + b"".join(events))


HLO_OP, HLO_MODULE, VALUE_DOT, VALUE_FUSION, VALUE_MODULE = 1, 2, 3, 4, 5
DOT, FUSION, OTHER = 7, 8, 9


def operation(metadata, text, offset_us, duration_us):
    return event(metadata, offset_us * 1_000_000, duration_us * 1_000_000, field(1, HLO_OP) + field(7, text),
                 field(1, HLO_MODULE) + field(7, VALUE_MODULE))


def made(start_ns):
    """start_ns: since 1970. Times of lines are relative to it."""
    host = field(2, "/host:CPU")
    host += line("python", 1000, event(OTHER, 0, 9_000_000))
    host += line("tf_XLAEigen/1", 1000, operation(FUSION, VALUE_FUSION, 100, 50), operation(DOT, VALUE_DOT, 110, 20),
                 operation(DOT, VALUE_DOT, 200, 30))
    for key, name in ((DOT, "dot.3"), (FUSION, "tanh_fusion"), (OTHER, "ParseArguments")):
        host += entry(4, key, field(2, name))
    for key, name in ((HLO_OP, "hlo_op"), (HLO_MODULE, "hlo_module"), (VALUE_DOT, "dot.3"), (VALUE_FUSION, "tanh_fusion"),
                      (VALUE_MODULE, "jit_step")):
        host += entry(5, key, field(2, name))
    device = field(2, "/device:GPU:0") + line("XLA Ops", 2000, event(1, 0, 5_000_000)) + entry(4, 1, field(2, "copy.1"))
    task = field(2, "Task Environment") + entry(5, 1, field(2, "profile_start_time")) + field(6, field(1, 1) + field(3, start_ns))
    return field(1, host) + field(1, device) + field(1, task)
