#include "base/schema.h"

#include <ctype.h>
#include <string.h>

#define COLUMN(struct_name, member, column, type, unit) \
	{ \
		column, type, offsetof(struct struct_name, member), 0, unit \
	}
#define TEXT(struct_name, member, column) \
	{ \
		column, KYMO_TEXT, offsetof(struct struct_name, member), \
			sizeof(((struct struct_name *)0)->member), NULL \
	}

static const struct kymo_column zone_columns[] = {
	COLUMN(kymo_zone_row, start_ticks, "start_ns", KYMO_TIME, "ns"),
	COLUMN(kymo_zone_row, duration_ticks, "duration_ns", KYMO_DURATION, "ns"),
	COLUMN(kymo_zone_row, name, "name", KYMO_NAME, NULL),
	COLUMN(kymo_zone_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(kymo_zone_row, depth, "depth", KYMO_U16, NULL),
	COLUMN(kymo_zone_row, flags, "flags", KYMO_U16, NULL),
	COLUMN(kymo_zone_row, step, "step", KYMO_U32, NULL),
};

static const struct kymo_column mark_columns[] = {
	COLUMN(schema_mark_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_mark_row, name, "name", KYMO_NAME, NULL),
	COLUMN(schema_mark_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(schema_mark_row, step, "step", KYMO_U32, NULL),
	COLUMN(schema_mark_row, text, "text_number", KYMO_U32, NULL),
};

static const struct kymo_column link_columns[] = {
	COLUMN(schema_link_row, from_ticks, "from_ns", KYMO_TIME, "ns"),
	COLUMN(schema_link_row, to_ticks, "to_ns", KYMO_TIME, "ns"),
	COLUMN(schema_link_row, sequence, "sequence", KYMO_U64, NULL),
	COLUMN(schema_link_row, from_name, "from_name", KYMO_NAME, NULL),
	COLUMN(schema_link_row, to_name, "to_name", KYMO_NAME, NULL),
	COLUMN(schema_link_row, from_tid, "from_tid", KYMO_I32, NULL),
	COLUMN(schema_link_row, thread, "thread", KYMO_THREAD, NULL),
};

static const struct kymo_column counter_columns[] = {
	COLUMN(schema_counter_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_counter_row, value, "value", KYMO_F64, NULL),
	COLUMN(schema_counter_row, name, "name", KYMO_NAME, NULL),
	COLUMN(schema_counter_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(schema_counter_row, step, "step", KYMO_U32, NULL),
};

static const struct kymo_column step_columns[] = {
	COLUMN(schema_step_row, start_ticks, "start_ns", KYMO_TIME, "ns"),
	COLUMN(schema_step_row, duration_ticks, "duration_ns", KYMO_DURATION, "ns"),
	COLUMN(schema_step_row, phase_ticks[KYMO_PHASE_DATA], "data_ns", KYMO_DURATION, "ns"),
	COLUMN(schema_step_row, phase_ticks[KYMO_PHASE_FORWARD], "forward_ns", KYMO_DURATION, "ns"),
	COLUMN(schema_step_row, phase_ticks[KYMO_PHASE_BACKWARD], "backward_ns", KYMO_DURATION,
	       "ns"),
	COLUMN(schema_step_row, phase_ticks[KYMO_PHASE_OPTIMIZER], "optimizer_ns", KYMO_DURATION,
	       "ns"),
	COLUMN(schema_step_row, step, "step", KYMO_U32, NULL),
	COLUMN(schema_step_row, name, "name", KYMO_NAME, NULL),
	COLUMN(schema_step_row, thread, "thread", KYMO_THREAD, NULL),
};

static const struct kymo_column text_columns[] = {
	COLUMN(schema_text_row, at_ticks, "at_ns", KYMO_TIME, "ns"),
	COLUMN(schema_text_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(schema_text_row, number, "number", KYMO_U32, NULL),
	COLUMN(schema_text_row, name, "name", KYMO_NAME, NULL),
	COLUMN(schema_text_row, part, "part", KYMO_U16, NULL),
	COLUMN(schema_text_row, kind, "kind", KYMO_U16, NULL),
	COLUMN(schema_text_row, value, "value", KYMO_U64, NULL),
	TEXT(schema_text_row, text, "text"),
};

static const struct kymo_column host_process_columns[] = {
	COLUMN(schema_host_process_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_host_process_row, pid, "target_pid", KYMO_I32, NULL),
	COLUMN(schema_host_process_row, cpu_pct, "cpu_pct", KYMO_F64, "%"),
	COLUMN(schema_host_process_row, rss_bytes, "rss_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_process_row, vms_bytes, "vms_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_process_row, threads, "threads", KYMO_U32, NULL),
	COLUMN(schema_host_process_row, minor_faults, "minor_faults", KYMO_U64, NULL),
	COLUMN(schema_host_process_row, major_faults, "major_faults", KYMO_U64, NULL),
	COLUMN(schema_host_process_row, voluntary_switches, "voluntary_switches", KYMO_U64, NULL),
	COLUMN(schema_host_process_row, involuntary_switches, "involuntary_switches", KYMO_U64,
	       NULL),
	COLUMN(schema_host_process_row, peak_bytes, "peak_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_process_row, cpu_ns, "cpu_ns", KYMO_U64, "ns"),
	COLUMN(schema_host_process_row, children_cpu_ns, "children_cpu_ns", KYMO_U64, "ns"),
	COLUMN(schema_host_process_row, run_delay_ns, "run_delay_ns", KYMO_U64, "ns"),
	COLUMN(schema_host_process_row, family_peak_bytes, "family_peak_bytes", KYMO_U64, "bytes"),
};

static const struct kymo_column host_memory_columns[] = {
	COLUMN(schema_host_memory_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_host_memory_row, pid, "target_pid", KYMO_I32, NULL),
	COLUMN(schema_host_memory_row, rss_bytes, "rss_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_memory_row, since_ns, "since_ns", KYMO_U64, "ns"),
};

static const struct kymo_column host_io_columns[] = {
	COLUMN(schema_host_io_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_host_io_row, pid, "target_pid", KYMO_I32, NULL),
	COLUMN(schema_host_io_row, read_bytes, "read_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_io_row, write_bytes, "write_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_io_row, read_calls, "read_calls", KYMO_U64, NULL),
	COLUMN(schema_host_io_row, write_calls, "write_calls", KYMO_U64, NULL),
	COLUMN(schema_host_io_row, moved_bytes, "moved_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_io_row, kernel_ns, "kernel_ns", KYMO_U64, "ns"),
};

static const struct kymo_column host_cpu_columns[] = {
	COLUMN(schema_host_cpu_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_host_cpu_row, cpu, "cpu", KYMO_I32, NULL),
	COLUMN(schema_host_cpu_row, busy_pct, "busy_pct", KYMO_F64, "%"),
	COLUMN(schema_host_cpu_row, iowait_pct, "iowait_pct", KYMO_F64, "%"),
	COLUMN(schema_host_cpu_row, pressure_pct, "pressure_pct", KYMO_F64, "%"),
};

static const struct kymo_column host_network_columns[] = {
	COLUMN(schema_host_network_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	TEXT(schema_host_network_row, interface, "interface"),
	COLUMN(schema_host_network_row, rx_bytes, "rx_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_network_row, tx_bytes, "tx_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_network_row, pid, "target_pid", KYMO_I32, NULL),
};

static const struct kymo_column host_threads_columns[] = {
	COLUMN(schema_host_threads_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_host_threads_row, pid, "target_pid", KYMO_I32, NULL),
	COLUMN(schema_host_threads_row, tid, "target_tid", KYMO_I32, NULL),
	TEXT(schema_host_threads_row, name, "target_thread"),
	COLUMN(schema_host_threads_row, cpu_pct, "cpu_pct", KYMO_F64, "%"),
	COLUMN(schema_host_threads_row, cpu_ns, "cpu_ns", KYMO_U64, "ns"),
	TEXT(schema_host_threads_row, state, "state"),
	COLUMN(schema_host_threads_row, voluntary_switches, "voluntary_switches", KYMO_U64, NULL),
	COLUMN(schema_host_threads_row, involuntary_switches, "involuntary_switches", KYMO_U64,
	       NULL),
	COLUMN(schema_host_threads_row, run_delay_ns, "run_delay_ns", KYMO_U64, "ns"),
	COLUMN(schema_host_threads_row, activity, "activity", KYMO_NAME, NULL),
	COLUMN(schema_host_threads_row, waits_for, "waits_for", KYMO_NAME, NULL),
};

static const struct kymo_column host_gpu_columns[] = {
	COLUMN(schema_host_gpu_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_host_gpu_row, device, "device", KYMO_U32, NULL),
	COLUMN(schema_host_gpu_row, util_pct, "util_pct", KYMO_F64, "%"),
	COLUMN(schema_host_gpu_row, used_bytes, "used_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_gpu_row, total_bytes, "total_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_gpu_row, power_w, "power_w", KYMO_F64, "W"),
};

static const struct kymo_column host_cgroup_columns[] = {
	COLUMN(schema_host_cgroup_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_host_cgroup_row, pid, "target_pid", KYMO_I32, NULL),
	TEXT(schema_host_cgroup_row, path, "path"),
	COLUMN(schema_host_cgroup_row, memory_bytes, "memory_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_cgroup_row, memory_limit_bytes, "memory_limit_bytes", KYMO_U64, "bytes"),
	COLUMN(schema_host_cgroup_row, cpu_limit, "cpu_limit", KYMO_F64, NULL),
	COLUMN(schema_host_cgroup_row, throttled_ns, "throttled_ns", KYMO_U64, "ns"),
	COLUMN(schema_host_cgroup_row, throttled_count, "throttled_count", KYMO_U64, NULL),
	COLUMN(schema_host_cgroup_row, pressure_pct[0][0], "cpu_some_pct", KYMO_F64, "%"),
	COLUMN(schema_host_cgroup_row, pressure_pct[0][1], "cpu_full_pct", KYMO_F64, "%"),
	COLUMN(schema_host_cgroup_row, pressure_pct[1][0], "memory_some_pct", KYMO_F64, "%"),
	COLUMN(schema_host_cgroup_row, pressure_pct[1][1], "memory_full_pct", KYMO_F64, "%"),
	COLUMN(schema_host_cgroup_row, pressure_pct[2][0], "io_some_pct", KYMO_F64, "%"),
	COLUMN(schema_host_cgroup_row, pressure_pct[2][1], "io_full_pct", KYMO_F64, "%"),
	COLUMN(schema_host_cgroup_row, oom_kills, "oom_kills", KYMO_U64, NULL),
};

static const struct kymo_column trigger_columns[] = {
	COLUMN(schema_trigger_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	TEXT(schema_trigger_row, trigger, "trigger"),
	TEXT(schema_trigger_row, action, "action"),
	TEXT(schema_trigger_row, result, "result"),
	COLUMN(schema_trigger_row, rows, "rows", KYMO_U64, NULL),
	TEXT(schema_trigger_row, row, "row"),
	TEXT(schema_trigger_row, saved, "saved"),
	COLUMN(schema_trigger_row, bytes, "bytes", KYMO_U64, "bytes"),
};

static const struct kymo_column config_columns[] = {
	COLUMN(schema_config_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	TEXT(schema_config_row, key, "key"),
	TEXT(schema_config_row, old_value, "old"),
	TEXT(schema_config_row, new_value, "new"),
	TEXT(schema_config_row, by, "by"),
};

static const struct kymo_column cost_columns[] = {
	COLUMN(schema_cost_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	TEXT(schema_cost_row, source, "source"),
	COLUMN(schema_cost_row, events, "events", KYMO_U64, NULL),
	COLUMN(schema_cost_row, cost_ns, "cost_ns", KYMO_U64, "ns"),
};

static const struct kymo_column gap_columns[] = {
	COLUMN(schema_gap_row, start_ticks, "start_ns", KYMO_TIME, "ns"),
	COLUMN(schema_gap_row, duration_ticks, "duration_ns", KYMO_DURATION, "ns"),
	COLUMN(schema_gap_row, events, "events", KYMO_U64, NULL),
	COLUMN(schema_gap_row, cause, "cause", KYMO_NAME, NULL),
	COLUMN(schema_gap_row, thread, "thread", KYMO_THREAD, NULL),
};

static const struct kymo_column import_columns[] = {
	COLUMN(schema_import_row, events, "events", KYMO_U64, NULL),
	COLUMN(schema_import_row, file, "file", KYMO_NAME, NULL),
	COLUMN(schema_import_row, category, "category", KYMO_NAME, NULL),
	COLUMN(schema_import_row, became, "became", KYMO_NAME, NULL),
	COLUMN(schema_import_row, phase, "phase", KYMO_U16, NULL),
	COLUMN(schema_import_row, kept, "kept", KYMO_U16, NULL),
};

static const struct kymo_column torch_columns[] = {
	COLUMN(schema_torch_row, start_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_torch_row, duration_ticks, "duration_ns", KYMO_DURATION, "ns"),
	COLUMN(schema_torch_row, child_ticks, "child_ns", KYMO_DURATION, "ns"),
	COLUMN(schema_torch_row, module, "module", KYMO_NAME, NULL),
	COLUMN(schema_torch_row, model, "model", KYMO_NAME, NULL),
	COLUMN(schema_torch_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(schema_torch_row, step, "step", KYMO_U32, NULL),
	COLUMN(schema_torch_row, sequence, "seq", KYMO_U32, NULL),
	COLUMN(schema_torch_row, stage, "stage", KYMO_U16, NULL),
	COLUMN(schema_torch_row, depth, "depth", KYMO_U16, NULL),
	COLUMN(schema_torch_row, flags, "flags", KYMO_U32, NULL),
	COLUMN(schema_torch_row, device, "device", KYMO_I32, NULL),
	COLUMN(schema_torch_row, allocated_bytes, "allocated_bytes", KYMO_I64, "bytes"),
	COLUMN(schema_torch_row, peak_bytes, "peak_bytes", KYMO_I64, "bytes"),
	COLUMN(schema_torch_row, reserved_bytes, "reserved_bytes", KYMO_I64, "bytes"),
};

static const struct kymo_column torch_op_columns[] = {
	COLUMN(schema_torch_op_row, start_ticks, "start_ns", KYMO_TIME, "ns"),
	COLUMN(schema_torch_op_row, duration_ticks, "duration_ns", KYMO_DURATION, "ns"),
	COLUMN(schema_torch_op_row, flops, "flops", KYMO_U64, NULL),
	COLUMN(schema_torch_op_row, sequence, "sequence", KYMO_I64, NULL),
	COLUMN(schema_torch_op_row, name, "name", KYMO_NAME, NULL),
	COLUMN(schema_torch_op_row, module, "module", KYMO_NAME, NULL),
	COLUMN(schema_torch_op_row, model, "model", KYMO_NAME, NULL),
	COLUMN(schema_torch_op_row, shapes, "shapes", KYMO_NAME, NULL),
	COLUMN(schema_torch_op_row, dtypes, "dtypes", KYMO_NAME, NULL),
	COLUMN(schema_torch_op_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(schema_torch_op_row, step, "step", KYMO_U32, NULL),
	COLUMN(schema_torch_op_row, kind, "kind", KYMO_U16, NULL),
	COLUMN(schema_torch_op_row, depth, "depth", KYMO_U16, NULL),
};

static const struct kymo_column torch_peak_columns[] = {
	COLUMN(schema_torch_peak_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_torch_peak_row, flops, "flops_per_s", KYMO_F64, NULL),
	COLUMN(schema_torch_peak_row, device, "device", KYMO_NAME, NULL),
	COLUMN(schema_torch_peak_row, dtype, "dtype", KYMO_NAME, NULL),
	COLUMN(schema_torch_peak_row, origin, "origin", KYMO_NAME, NULL),
};

static const struct kymo_column variable_columns[] = {
	COLUMN(schema_variable_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_variable_row, step, "step", KYMO_U32, NULL),
	COLUMN(schema_variable_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(schema_variable_row, function, "func", KYMO_NAME, NULL),
	COLUMN(schema_variable_row, name, "name", KYMO_NAME, NULL),
	COLUMN(schema_variable_row, type, "type", KYMO_NAME, NULL),
	TEXT(schema_variable_row, value, "value"),
};

static const struct kymo_column sample_columns[] = {
	COLUMN(schema_sample_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_sample_row, stack, "node", KYMO_U32, NULL),
	COLUMN(schema_sample_row, pid, "target_pid", KYMO_I32, NULL),
	COLUMN(schema_sample_row, tid, "target_tid", KYMO_I32, NULL),
	COLUMN(schema_sample_row, thread_name, "thread_name", KYMO_NAME, NULL),
	COLUMN(schema_sample_row, cause, "cause", KYMO_NAME, NULL),
	COLUMN(schema_sample_row, state, "state", KYMO_U16, NULL),
	COLUMN(schema_sample_row, gil, "gil", KYMO_U16, NULL),
	COLUMN(schema_sample_row, weight_ns, "weight_ns", KYMO_U64, "ns"),
	COLUMN(schema_sample_row, activity, "activity", KYMO_NAME, NULL),
	COLUMN(schema_sample_row, waits_for, "waits_for", KYMO_NAME, NULL),
};

static const struct kymo_column frame_columns[] = {
	COLUMN(schema_frame_row, node, "node", KYMO_U32, NULL),
	COLUMN(schema_frame_row, parent, "parent", KYMO_U32, NULL),
	COLUMN(schema_frame_row, name, "name", KYMO_NAME, NULL),
	COLUMN(schema_frame_row, line, "lineno", KYMO_U32, NULL),
};

static const struct kymo_column loop_stall_columns[] = {
	COLUMN(schema_loop_stall_row, start_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_loop_stall_row, duration_ticks, "duration_ns", KYMO_DURATION, "ns"),
	COLUMN(schema_loop_stall_row, coroutine, "coroutine", KYMO_NAME, NULL),
	COLUMN(schema_loop_stall_row, file, "coroutine_file", KYMO_NAME, NULL),
	COLUMN(schema_loop_stall_row, line, "coroutine_line", KYMO_U32, NULL),
	COLUMN(schema_loop_stall_row, task, "task", KYMO_NAME, NULL),
	COLUMN(schema_loop_stall_row, ready, "ready", KYMO_I32, NULL),
	COLUMN(schema_loop_stall_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(schema_loop_stall_row, kind, "kind", KYMO_U16, NULL),
};

static const struct kymo_column native_columns[] = {
	COLUMN(schema_native_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_native_row, stack, "node", KYMO_U32, NULL),
	COLUMN(schema_native_row, pid, "target_pid", KYMO_I32, NULL),
	COLUMN(schema_native_row, tid, "target_tid", KYMO_I32, NULL),
	COLUMN(schema_native_row, thread_name, "thread_name", KYMO_NAME, NULL),
	COLUMN(schema_native_row, flags, "flags", KYMO_U32, NULL),
	COLUMN(schema_native_row, weight_ns, "weight_ns", KYMO_U64, "ns"),
	COLUMN(schema_native_row, holder, "holder", KYMO_I32, NULL),
	COLUMN(schema_native_row, activity, "activity", KYMO_NAME, NULL),
	COLUMN(schema_native_row, waits_for, "waits_for", KYMO_NAME, NULL),
};

static const struct kymo_column native_frame_columns[] = {
	COLUMN(schema_native_frame_row, node, "node", KYMO_U32, NULL),
	COLUMN(schema_native_frame_row, parent, "parent", KYMO_U32, NULL),
	COLUMN(schema_native_frame_row, name, "name", KYMO_NAME, NULL),
	COLUMN(schema_native_frame_row, line, "lineno", KYMO_U32, NULL),
	COLUMN(schema_native_frame_row, module, "module", KYMO_NAME, NULL),
	COLUMN(schema_native_frame_row, flags, "flags", KYMO_U32, NULL),
};

static const struct kymo_column native_module_columns[] = {
	COLUMN(schema_native_module_row, pid, "target_pid", KYMO_I32, NULL),
	COLUMN(schema_native_module_row, path, "path", KYMO_NAME, NULL),
	COLUMN(schema_native_module_row, build_id, "build_id", KYMO_NAME, NULL),
	COLUMN(schema_native_module_row, load_address, "load_address", KYMO_U64, NULL),
	COLUMN(schema_native_module_row, symbols, "symbols", KYMO_NAME, NULL),
	COLUMN(schema_native_module_row, lines, "lines", KYMO_U32, NULL),
};

static const struct kymo_column device_op_columns[] = {
	COLUMN(schema_device_op_row, queued_ticks, "queued_ns", KYMO_TIME, "ns"),
	COLUMN(schema_device_op_row, submit_ticks, "submit_ns", KYMO_TIME, "ns"),
	COLUMN(schema_device_op_row, start_ticks, "start_ns", KYMO_TIME, "ns"),
	COLUMN(schema_device_op_row, end_ticks, "end_ns", KYMO_TIME, "ns"),
	COLUMN(schema_device_op_row, bytes, "bytes", KYMO_U64, "bytes"),
	COLUMN(schema_device_op_row, correlation, "correlation", KYMO_U64, NULL),
	COLUMN(schema_device_op_row, zone_start_ticks, "zone_start_ns", KYMO_TIME, "ns"),
	COLUMN(schema_device_op_row, execution, "execution", KYMO_U64, NULL),
	COLUMN(schema_device_op_row, device, "device", KYMO_NAME, NULL),
	COLUMN(schema_device_op_row, queue, "queue", KYMO_NAME, NULL),
	COLUMN(schema_device_op_row, model, "model", KYMO_NAME, NULL),
	COLUMN(schema_device_op_row, name, "name", KYMO_NAME, NULL),
	COLUMN(schema_device_op_row, zone, "zone", KYMO_NAME, NULL),
	COLUMN(schema_device_op_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(schema_device_op_row, step, "step", KYMO_U32, NULL),
	COLUMN(schema_device_op_row, error_ns, "error_ns", KYMO_U32, "ns"),
	COLUMN(schema_device_op_row, core, "core", KYMO_I32, NULL),
	COLUMN(schema_device_op_row, status, "status", KYMO_I32, NULL),
	COLUMN(schema_device_op_row, flags, "flags", KYMO_U32, NULL),
	COLUMN(schema_device_op_row, kind, "kind", KYMO_U16, NULL),
	COLUMN(schema_device_op_row, call_ticks, "call_ns", KYMO_DURATION, "ns"),
	COLUMN(schema_device_op_row, module, "module", KYMO_NAME, NULL),
	COLUMN(schema_device_op_row, call, "call", KYMO_NAME, NULL),
};

static const struct kymo_column collective_columns[] = {
	COLUMN(schema_collective_row, enqueue_ticks, "enqueue_ns", KYMO_TIME, "ns"),
	COLUMN(schema_collective_row, start_ticks, "start_ns", KYMO_TIME, "ns"),
	COLUMN(schema_collective_row, end_ticks, "end_ns", KYMO_TIME, "ns"),
	COLUMN(schema_collective_row, seq, "seq", KYMO_U64, NULL),
	COLUMN(schema_collective_row, bytes, "bytes", KYMO_U64, "bytes"),
	COLUMN(schema_collective_row, call, "call", KYMO_U64, NULL),
	COLUMN(schema_collective_row, correlation, "correlation", KYMO_U64, NULL),
	COLUMN(schema_collective_row, group, "group_name", KYMO_NAME, NULL),
	COLUMN(schema_collective_row, op, "op", KYMO_NAME, NULL),
	COLUMN(schema_collective_row, dtype, "dtype", KYMO_NAME, NULL),
	COLUMN(schema_collective_row, members, "members", KYMO_NAME, NULL),
	COLUMN(schema_collective_row, zone, "zone", KYMO_NAME, NULL),
	COLUMN(schema_collective_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(schema_collective_row, step, "step", KYMO_U32, NULL),
	COLUMN(schema_collective_row, group_size, "group_size", KYMO_U32, NULL),
	COLUMN(schema_collective_row, rank, "row_rank", KYMO_I32, NULL),
	COLUMN(schema_collective_row, peer, "peer", KYMO_I32, NULL),
	COLUMN(schema_collective_row, flags, "flags", KYMO_U32, NULL),
};

static const struct kymo_column device_memory_columns[] = {
	COLUMN(schema_device_memory_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_device_memory_row, bytes, "bytes", KYMO_I64, "bytes"),
	COLUMN(schema_device_memory_row, live_bytes, "live_bytes", KYMO_I64, "bytes"),
	COLUMN(schema_device_memory_row, device, "device", KYMO_NAME, NULL),
	COLUMN(schema_device_memory_row, kind, "kind", KYMO_NAME, NULL),
	COLUMN(schema_device_memory_row, thread, "thread", KYMO_THREAD, NULL),
	COLUMN(schema_device_memory_row, step, "step", KYMO_U32, NULL),
};

static const struct kymo_column device_clock_columns[] = {
	COLUMN(schema_device_clock_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_device_clock_row, device_ns, "device_ns", KYMO_U64, "ns"),
	COLUMN(schema_device_clock_row, drift_ppm, "drift_ppm", KYMO_F64, NULL),
	COLUMN(schema_device_clock_row, miss_ns, "miss_ns", KYMO_I64, "ns"),
	COLUMN(schema_device_clock_row, error_ns, "error_ns", KYMO_U32, "ns"),
	COLUMN(schema_device_clock_row, device, "device", KYMO_NAME, NULL),
};

_Static_assert(sizeof(struct schema_alloc_row) == 24, "there may be very many");
static const struct kymo_column alloc_columns[] = {
	COLUMN(schema_alloc_row, ts_ticks, "ts_ns", KYMO_TIME, "ns"),
	COLUMN(schema_alloc_row, place, "place", KYMO_U64, NULL),
	COLUMN(schema_alloc_row, what, "what", KYMO_U64, NULL),
};

#define TABLE(name, columns, row, about) \
	{ \
		name, columns, sizeof(columns) / sizeof(columns[0]), sizeof(struct row), about \
	}

static const struct schema_table tables[SCHEMA_COUNT] = {
	[SCHEMA_ZONES] = TABLE("trace.zones", zone_columns, kymo_zone_row,
			       "Zones that have ended, one row each."),
	[SCHEMA_MARKS] = TABLE("trace.marks", mark_columns, schema_mark_row,
			       "Marks: named moments."),
	[SCHEMA_LINKS] = TABLE("trace.links", link_columns, schema_link_row,
			       "Forward operators of torch and their backward operators."),
	[SCHEMA_COUNTERS] = TABLE("trace.counters", counter_columns, schema_counter_row,
				  "Counter values over time."),
	[SCHEMA_STEPS] = TABLE("trace.steps", step_columns, schema_step_row,
			       "Steps of the program's main loop."),
	[SCHEMA_TEXT] = TABLE("trace.zone_text", text_columns, schema_text_row,
			      "Texts and values attached to zones and marks."),
	[SCHEMA_HOST_PROCESS] = TABLE("host.process", host_process_columns, schema_host_process_row,
				      "CPU, memory, faults and switches of each process."),
	[SCHEMA_HOST_MEMORY] = TABLE("host.memory", host_memory_columns, schema_host_memory_row,
				     "Memory of each process, when it has changed."),
	[SCHEMA_HOST_IO] = TABLE("host.io", host_io_columns, schema_host_io_row,
				 "Bytes read and written by each process."),
	[SCHEMA_HOST_CPU] = TABLE("host.cpu", host_cpu_columns, schema_host_cpu_row,
				  "Utilisation of the machine's processors."),
	[SCHEMA_HOST_NETWORK] = TABLE("host.network", host_network_columns, schema_host_network_row,
				      "Bytes received and sent by each interface."),
	[SCHEMA_HOST_THREADS] = TABLE("host.threads", host_threads_columns, schema_host_threads_row,
				      "CPU time and context switches of threads that ran."),
	[SCHEMA_HOST_GPU] = TABLE("host.gpu", host_gpu_columns, schema_host_gpu_row,
				  "Utilisation, memory and power of GPUs."),
	[SCHEMA_HOST_CGROUP] = TABLE("host.cgroup", host_cgroup_columns, schema_host_cgroup_row,
				     "Limits, use and pressure of control groups."),
	[SCHEMA_SAMPLES] = TABLE("python.samples", sample_columns, schema_sample_row,
				 "Python stacks over time, one row for each thread."),
	[SCHEMA_FRAMES] = TABLE("python.frames", frame_columns, schema_frame_row,
				"Frames of Python stacks: functions and their callers."),
	[SCHEMA_LOOP_STALLS] = TABLE("python.loop_stalls", loop_stall_columns,
				     schema_loop_stall_row,
				     "Callbacks that blocked an event loop for longer than 10 ms."),
	[SCHEMA_NATIVE_SAMPLES] = TABLE("native.samples", native_columns, schema_native_row,
					"Native stacks over time, one row for each sample."),
	[SCHEMA_NATIVE_FRAMES] = TABLE("native.frames", native_frame_columns,
				       schema_native_frame_row,
				       "Frames of native stacks: functions and their callers."),
	[SCHEMA_NATIVE_MODULES] = TABLE("native.modules", native_module_columns,
					schema_native_module_row,
					"Files in which these frames are, with their build ids."),
	[SCHEMA_CONFIG] = TABLE("kymo.config", config_columns, schema_config_row,
				"Changes of the configuration."),
	[SCHEMA_TRIGGERS] = TABLE("kymo.triggers", trigger_columns, schema_trigger_row,
				  "Triggers that fired, and what was done and saved."),
	[SCHEMA_OVERHEAD] = TABLE("kymo.costs", cost_columns, schema_cost_row,
				  "Recording cost of each source so far, as measured."),
	[SCHEMA_GAPS] = TABLE("kymo.gaps", gap_columns, schema_gap_row,
			      "Periods in which a source could not record."),
	[SCHEMA_IMPORTS] = TABLE("kymo.imports", import_columns, schema_import_row,
				 "Events of imported traces, by what became of them."),
	[SCHEMA_TORCH] = TABLE("python.torch_trace", torch_columns, schema_torch_row,
			       "Forward and backward of every torch module, and optimizer steps."),
	[SCHEMA_TORCH_OPS] = TABLE("torch.ops", torch_op_columns, schema_torch_op_row,
				   "Operators of torch with shapes and FLOPs."),
	[SCHEMA_TORCH_PEAKS] = TABLE("torch.peaks", torch_peak_columns, schema_torch_peak_row,
				     "Highest rates of devices, in FLOP/s."),
	[SCHEMA_ALLOC] = TABLE("alloc.rows", alloc_columns, schema_alloc_row,
			       "Allocations and frees, packed: alloc.allocations reads them."),
	[SCHEMA_ALLOC_FRAMES] = TABLE("alloc.frames", frame_columns, schema_frame_row,
				      "Frames of allocation stacks: functions and their callers."),
	[SCHEMA_VARIABLES] = TABLE("python.variables", variable_columns, schema_variable_row,
				   "Values of watched variables."),
	[SCHEMA_DEVICE_OPS] = TABLE(
		"device.ops", device_op_columns, schema_device_op_row,
		"Operations of devices, executions of models, waits of the host."),
	[SCHEMA_COLLECTIVES] = TABLE("dist.collectives", collective_columns, schema_collective_row,
				     "Collectives and point-to-point calls of process groups."),
	[SCHEMA_DEVICE_MEMORY] = TABLE("device.memory", device_memory_columns,
				       schema_device_memory_row, "Memory of devices over time."),
	[SCHEMA_DEVICE_CLOCKS] = TABLE("device.clocks", device_clock_columns,
				       schema_device_clock_row,
				       "Clocks of devices, read together with the host's."),
};

const struct schema_table *schema_get(enum schema_id id)
{
	if ((unsigned)id >= SCHEMA_COUNT || !tables[id].name)
		return NULL;
	return &tables[id];
}

const struct schema_table *schema_find(const char *name)
{
	for (size_t i = 0; i < SCHEMA_COUNT; i++)
		if (tables[i].name && !strcmp(tables[i].name, name))
			return &tables[i];
	return NULL;
}

bool schema_is_word(const char *text, size_t bytes)
{
	if (!bytes || isdigit((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < bytes; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return true;
}

size_t schema_type_bytes(uint32_t type)
{
	switch (type) {
	case KYMO_BOOL: return 1;
	case KYMO_U16: return 2;
	case KYMO_I32:
	case KYMO_U32:
	case KYMO_F32:
	case KYMO_NAME:
	case KYMO_THREAD: return 4;
	case KYMO_I64:
	case KYMO_U64:
	case KYMO_F64:
	case KYMO_TIME:
	case KYMO_DURATION: return 8;
	default: return 0;
	}
}

const char *schema_source_word(uint32_t source)
{
	static const char *const words[] = { "c",  "python", "line", "torch", "device",
					     "op", "mark",   "itt",  "nvtx",  "xla" };

	return source < sizeof(words) / sizeof(words[0]) ? words[source] : "?";
}
