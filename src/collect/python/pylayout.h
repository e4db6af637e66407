/*
 * Where a CPython keeps what a reader from outside needs: offsets in bytes, by minor version. 3.11
 * and 3.12 say nothing about themselves; from 3.13 on _PyRuntime begins with a description
 * (_Py_DebugOffsets), which replaces the table's values where it has them. The table is made from
 * the headers by tools/gen-pylayout.
 */
#ifndef KYMO_COLLECT_PYTHON_PYLAYOUT_H
#define KYMO_COLLECT_PYTHON_PYLAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define PYLAYOUT_OLDEST 11
#define PYLAYOUT_NEWEST 14

/* One list: the struct, the table and tools/gen-pylayout follow it. */
#define PYLAYOUT_FIELDS(X) \
	X(runtime_finalizing) \
	X(runtime_interpreters_head) \
	X(runtime_gil) \
	X(interp_next) \
	X(interp_threads_head) \
	X(interp_modules) \
	X(interp_gil) \
	X(interp_tasks) \
	X(gil_last_holder) \
	X(gil_locked) \
	X(gil_mutex) \
	X(gil_size) \
	X(thread_next) \
	X(thread_cframe) \
	X(thread_current_frame) \
	X(thread_id) \
	X(thread_native_id) \
	X(thread_datastack_chunk) \
	X(thread_datastack_top) \
	X(thread_tasks) \
	X(cframe_current_frame) \
	X(chunk_previous) \
	X(chunk_size) \
	X(chunk_top) \
	X(chunk_data) \
	X(frame_previous) \
	X(frame_code) \
	X(frame_instr) \
	X(frame_localsplus) \
	X(frame_owner) \
	X(frame_stacktop) \
	X(frame_stackpointer) \
	X(gen_frame_state) \
	X(gen_frame) \
	X(frame_is_entry) \
	X(code_flags) \
	X(code_argcount) \
	X(code_stacksize) \
	X(code_firstlineno) \
	X(code_nlocalsplus) \
	X(code_framesize) \
	X(code_version) \
	X(code_localsplusnames) \
	X(code_localspluskinds) \
	X(code_filename) \
	X(code_name) \
	X(code_qualname) \
	X(code_linetable) \
	X(code_adaptive) \
	X(object_type) \
	X(var_size) \
	X(type_name) \
	X(type_flags) \
	X(type_basicsize) \
	X(type_base) \
	X(type_cached_keys) \
	X(tuple_item) \
	X(list_item) \
	X(dict_used) \
	X(dict_keys) \
	X(dict_values) \
	X(keys_log2_size) \
	X(keys_log2_index_bytes) \
	X(keys_kind) \
	X(keys_nentries) \
	X(keys_indices) \
	X(values_first) \
	X(set_used) \
	X(set_mask) \
	X(set_table) \
	X(float_value) \
	X(long_size) \
	X(long_digit) \
	X(bytes_value) \
	X(unicode_length) \
	X(unicode_state) \
	X(unicode_ascii_size) \
	X(unicode_compact_size) \
	X(unicode_kind_shift) \
	X(module_dict) \
	X(weakref_object) \
	X(method_self) \
	X(cfunction_self) \
	X(function_closure) \
	X(partial_args) \
	X(task_loop) \
	X(task_callback) \
	X(task_callbacks) \
	X(task_state) \
	X(task_waiter) \
	X(task_coroutine) \
	X(task_name) \
	X(task_node)

struct pylayout {
	int minor; /* of the version: 11 is 3.11 */
#define X(name) int32_t name;
	PYLAYOUT_FIELDS(X)
#undef X
};

/* The layout of 3.minor; of the newest one known where it is newer. NULL below 3.11. */
const struct pylayout *pylayout_find(int minor);

#define PYLAYOUT_DEBUG_BYTES \
	1024 /* of _PyRuntime, from its start: more than any version describes */
/* Takes over what _Py_DebugOffsets of that version says. 0, or -EINVAL: there is none, or it makes
   no sense. */
int pylayout_describe(struct pylayout *layout, const void *runtime, size_t bytes);

#endif
