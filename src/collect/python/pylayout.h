/*
 * Offsets of CPython's structs in bytes, by minor version. 3.11 and 3.12 have no description of
 * themselves; since 3.13 _PyRuntime begins with one (_Py_DebugOffsets), whose values replace those
 * of the table. The table is generated from the headers by tools/gen-pylayout.
 */
#ifndef KYMO_COLLECT_PYTHON_PYLAYOUT_H
#define KYMO_COLLECT_PYTHON_PYLAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define PYLAYOUT_OLDEST 11
#define PYLAYOUT_NEWEST 15

/* This list defines the struct, the table and the output of tools/gen-pylayout. */
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
	X(gen_created) \
	X(gen_awaiting) \
	X(gen_executing) \
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
	int minor; /* version: 11 is 3.11 */
#define X(name) int32_t name;
	PYLAYOUT_FIELDS(X)
#undef X
};

/* Readers copy the beginning of these structs, at most so many bytes, to look into them. */
#define PYLAYOUT_THREAD_BYTES 512
#define PYLAYOUT_FRAME_BYTES 128
#define PYLAYOUT_CODE_BYTES 192
#define PYLAYOUT_DICT_BYTES 64
#define PYLAYOUT_LONG_BYTES 40
#define PYLAYOUT_TEXT_BYTES 128

/* The layout of 3.minor; for a newer version that of the newest known one. NULL below 3.11. */
const struct pylayout *pylayout_find(int minor);

/* from the start of _PyRuntime: larger than the description of any version */
#define PYLAYOUT_DEBUG_BYTES 1024
/* Takes the values of _Py_DebugOffsets, which are the program's: an offset beyond what readers copy
   is refused. 0, or -EINVAL: missing or invalid. */
int pylayout_describe(struct pylayout *layout, const void *runtime, size_t bytes);

#endif
