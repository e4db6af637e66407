#include "collect/python/pylayout.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "collect/python/pylayout_table.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static const struct pylayout *layout_of(const struct pylayout *rows, size_t count, int minor)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].minor == minor)
			return &rows[i];
	return minor > rows[count - 1].minor ? &rows[count - 1] : NULL;
}

const struct pylayout *pylayout_find(int minor)
{
	return layout_of(pylayouts, ROWS(pylayouts), minor);
}

static bool take_offset(const uint64_t *words, int32_t word, int32_t *out)
{
	if (!word)
		return true;
	if (words[word] > 1u << 24)
		return false;
	*out = (int32_t)words[word];
	return true;
}

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
	const struct pylayout *places;
	bool sane = true;

	if (bytes < PYLAYOUT_DEBUG_BYTES || memcmp(runtime, "xdebugpy", 8) || words[1] >> 24 != 3)
		return -EINVAL;
	places = layout_of(pylayout_words, ROWS(pylayout_words), (int)(words[1] >> 16 & 0xff));
	if (!places)
		return -EINVAL;
#define X(name) sane = sane && take_offset(words, places->name, &layout->name);
	PYLAYOUT_FIELDS(X)
#undef X
	layout->thread_datastack_top = layout->thread_datastack_chunk + 8;
	return sane && is_readable(layout) ? 0 : -EINVAL;
}
