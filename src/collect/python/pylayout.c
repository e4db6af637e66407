#include "collect/python/pylayout.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "collect/python/pylayout_table.h"

#define TABLE_ROWS (sizeof(pylayouts) / sizeof(pylayouts[0]))

const struct pylayout *pylayout_find(int minor)
{
	const struct pylayout *newest = &pylayouts[TABLE_ROWS - 1];

	for (size_t i = 0; i < TABLE_ROWS; i++)
		if (pylayouts[i].minor == minor)
			return &pylayouts[i];
	return minor > newest->minor ? newest : NULL;
}

/*
 * The description is a list of 64-bit words in groups, which differ between versions. One row for
 * each used word: its position from the start of _PyRuntime, in words.
 */
struct described {
	uint16_t word;
	uint16_t field; /* offset in struct pylayout */
};

#define AT(word, name) \
	{ \
		word, offsetof(struct pylayout, name) \
	}

/* cookie, version, free_threaded, then runtime_state: size finalizing interpreters_head; and so
   on. */
static const struct described words_13[] = {
	AT(4, runtime_finalizing),
	AT(5, runtime_interpreters_head),
	AT(8, interp_next),
	AT(9, interp_threads_head),
	AT(11, interp_modules),
	AT(14, interp_gil),
	AT(21, thread_next),
	AT(23, thread_current_frame),
	AT(24, thread_id),
	AT(25, thread_native_id),
	AT(26, thread_datastack_chunk),
	AT(29, frame_previous),
	AT(30, frame_code),
	AT(31, frame_instr),
	AT(32, frame_localsplus),
	AT(33, frame_owner),
	AT(35, code_filename),
	AT(36, code_name),
	AT(37, code_qualname),
	AT(38, code_linetable),
	AT(39, code_firstlineno),
	AT(40, code_argcount),
	AT(41, code_localsplusnames),
	AT(42, code_localspluskinds),
	AT(43, code_adaptive),
	AT(45, object_type),
	AT(47, type_name),
	AT(49, type_flags),
	AT(51, tuple_item),
	AT(54, list_item),
	AT(57, dict_keys),
	AT(58, dict_values),
	AT(60, float_value),
	AT(62, long_size),
	AT(63, long_digit),
	AT(66, bytes_value),
	AT(68, unicode_state),
	AT(69, unicode_length),
	AT(70, unicode_ascii_size),
};

/* 3.14 adds threads_main and two generations to the interpreter, stackpointer and tlbc_index to the
   frame, co_tlbc to the code, and the set. */
static const struct described words_14[] = {
	AT(4, runtime_finalizing),
	AT(5, runtime_interpreters_head),
	AT(8, interp_next),
	AT(9, interp_threads_head),
	AT(12, interp_modules),
	AT(15, interp_gil),
	AT(24, thread_next),
	AT(26, thread_current_frame),
	AT(27, thread_id),
	AT(28, thread_native_id),
	AT(29, thread_datastack_chunk),
	AT(32, frame_previous),
	AT(33, frame_code),
	AT(34, frame_instr),
	AT(35, frame_localsplus),
	AT(36, frame_owner),
	AT(40, code_filename),
	AT(41, code_name),
	AT(42, code_qualname),
	AT(43, code_linetable),
	AT(44, code_firstlineno),
	AT(45, code_argcount),
	AT(46, code_localsplusnames),
	AT(47, code_localspluskinds),
	AT(48, code_adaptive),
	AT(51, object_type),
	AT(53, type_name),
	AT(55, type_flags),
	AT(57, tuple_item),
	AT(60, list_item),
	AT(63, set_used),
	AT(67, dict_keys),
	AT(68, dict_values),
	AT(70, float_value),
	AT(72, long_size),
	AT(73, long_digit),
	AT(76, bytes_value),
	AT(78, unicode_state),
	AT(79, unicode_length),
	AT(80, unicode_ascii_size),
};

/* True if all words at these offsets end within `bytes`; -1 stands for none. */
static bool all_within(const int32_t *offsets, size_t count, int32_t bytes)
{
	for (size_t i = 0; i < count; i++)
		if (offsets[i] > bytes - 8)
			return false;
	return true;
}
#define WITHIN(bytes, ...) \
	all_within((const int32_t[]){ __VA_ARGS__ }, \
		   sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t), bytes)

/* Offsets into structs that are copied. All others are only added to addresses. */
static bool is_readable(const struct pylayout *l)
{
	return WITHIN(PYLAYOUT_THREAD_BYTES, l->thread_next, l->thread_current_frame, l->thread_id,
		      l->thread_native_id, l->thread_datastack_chunk, l->thread_datastack_top) &&
	       l->frame_localsplus <= PYLAYOUT_FRAME_BYTES &&
	       WITHIN(l->frame_localsplus + 7, l->frame_owner, l->frame_is_entry) &&
	       WITHIN(l->frame_localsplus, l->frame_previous, l->frame_code, l->frame_instr,
		      l->frame_stackpointer) &&
	       WITHIN(l->frame_localsplus + 4, l->frame_stacktop) &&
	       WITHIN(PYLAYOUT_CODE_BYTES, l->code_linetable) &&
	       WITHIN(l->code_linetable + 8, l->code_filename, l->code_name, l->code_qualname,
		      l->code_firstlineno, l->code_argcount, l->code_localsplusnames,
		      l->code_localspluskinds, l->code_nlocalsplus, l->code_stacksize,
		      l->code_framesize, l->var_size) &&
	       WITHIN(PYLAYOUT_DICT_BYTES, l->dict_keys, l->dict_values) &&
	       WITHIN(PYLAYOUT_LONG_BYTES, l->long_size, l->long_digit) &&
	       l->unicode_ascii_size <= PYLAYOUT_TEXT_BYTES &&
	       WITHIN(l->unicode_ascii_size, l->unicode_length, l->unicode_state);
}

int pylayout_describe(struct pylayout *layout, const void *runtime, size_t bytes)
{
	const uint64_t *words = runtime;
	const struct described *rows = words_13;
	size_t count = sizeof(words_13) / sizeof(words_13[0]);
	int minor = bytes >= 16 ? (int)(words[1] >> 16 & 0xff) : 0;

	if (bytes < PYLAYOUT_DEBUG_BYTES || memcmp(runtime, "xdebugpy", 8) || words[1] >> 24 != 3 ||
	    minor < 13)
		return -EINVAL;
	if (minor >= 14) {
		rows = words_14;
		count = sizeof(words_14) / sizeof(words_14[0]);
	}
	for (size_t i = 0; i < count; i++) {
		uint64_t value = words[rows[i].word];

		if (value > 1u << 24)
			return -EINVAL;
		memcpy((char *)layout + rows[i].field, &(int32_t){ (int32_t)value }, 4);
	}
	layout->thread_datastack_top = layout->thread_datastack_chunk + 8;
	return is_readable(layout) ? 0 : -EINVAL;
}
