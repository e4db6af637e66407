#include "collect/python/pyobj.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/native/process_memory.h"

#define ENTRIES_MOST 65536 /* of a dictionary */
#define TEXT_CHARS_MOST 65536
#define FLAG_MANAGED_DICT (1u << 4)
#define FLAG_INLINE_VALUES (1u << 2)

#define MARK_BITS 3u
#define MARK_NUMBER 3u /* a small number stored in the word itself, used by the interpreter */

uint64_t pyobj_reference(const struct pymemory *memory, uint64_t word)
{
	if (memory->layout->minor < 14)
		return word;
	return (word & MARK_BITS) == MARK_NUMBER ? 0 : word & ~(uint64_t)MARK_BITS;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static size_t pyobj_put_utf8(uint32_t point, char *out)
{
	if (point >= 0xd800 && point < 0xe000)
		point = 0xfffd; /* a lone surrogate is not a character */
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		out[0] = (char)(0xc0 | point >> 6);
		out[1] = (char)(0x80 | (point & 63));
		return 2;
	}
	if (point < 0x10000) {
		out[0] = (char)(0xe0 | point >> 12);
		out[1] = (char)(0x80 | (point >> 6 & 63));
		out[2] = (char)(0x80 | (point & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | (point >> 18 & 7));
	out[1] = (char)(0x80 | (point >> 12 & 63));
	out[2] = (char)(0x80 | (point >> 6 & 63));
	out[3] = (char)(0x80 | (point & 63));
	return 4;
}

static uint32_t point_at(const unsigned char *data, unsigned kind, size_t at)
{
	if (kind == 1)
		return data[at];
	if (kind == 2)
		return (uint32_t)data[2 * at] | (uint32_t)data[2 * at + 1] << 8;
	return (uint32_t)data[4 * at] | (uint32_t)data[4 * at + 1] << 8 |
	       (uint32_t)data[4 * at + 2] << 16 | (uint32_t)(data[4 * at + 3] & 0x1f) << 24;
}

static ssize_t pyobj_decode(const unsigned char *data, unsigned kind, size_t length, char *out,
			    size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < length && used + 5 <= room; i++)
		used += pyobj_put_utf8(point_at(data, kind, i), out + used);
	out[used] = '\0';
	return (ssize_t)used;
}

ssize_t pyobj_text(const struct pymemory *memory, uint64_t object, char *out, size_t out_bytes)
{
	const struct pylayout *layout = memory->layout;
	unsigned char head[72 + 184], *data = head, *own = NULL;
	ssize_t got = process_memory_read_some(memory->pid, object, head, sizeof(head));
	uint32_t state;
	unsigned kind;
	size_t length, start, bytes;

	out[0] = '\0';
	if (got < layout->unicode_compact_size)
		return got < 0 ? got : -EFAULT;
	memcpy(&state, head + layout->unicode_state, 4);
	length = process_memory_word(head, layout->unicode_length);
	state >>= layout->unicode_kind_shift;
	kind = state & 7; /* followed by compact and ascii, one bit each */
	if ((kind != 1 && kind != 2 && kind != 4) || !(state & 8) || length > TEXT_CHARS_MOST)
		return -EINVAL;
	start = (size_t)(state & 16 ? layout->unicode_ascii_size : layout->unicode_compact_size);
	if (length > out_bytes)
		length = out_bytes; /* each character has at least one byte */
	bytes = length * kind;
	if (start + bytes > (size_t)got) {
		data = own = malloc(bytes + 1);
		if (!own || process_memory_read(memory->pid, object + start, own, bytes)) {
			free(own);
			return -EFAULT;
		}
		start = 0;
	}
	got = pyobj_decode(data + start, kind, length, out, out_bytes);
	free(own);
	return got;
}

/* ---- dictionaries ---------------------------------------------------------------------------- */

/* The entries of a table of keys. The values are in it or, if values != 0, in a separate array. */
struct entries {
	unsigned char *bytes;
	size_t count, width; /* 24: hash, key, value; 16: key, value */
	uint64_t *values;
};

static bool pyobj_read_entries(const struct pymemory *memory, uint64_t keys, uint64_t values,
			       struct entries *out)
{
	const struct pylayout *layout = memory->layout;
	unsigned char head[64];
	uint64_t count, first;

	memset(out, 0, sizeof(*out));
	if (!keys || process_memory_read(memory->pid, keys, head, sizeof(head)))
		return false;
	count = process_memory_word(head, layout->keys_nentries);
	if (count > ENTRIES_MOST || head[layout->keys_log2_index_bytes] > 40)
		return false;
	first = keys + (uint64_t)layout->keys_indices +
		(1ull << head[layout->keys_log2_index_bytes]);
	out->width = head[layout->keys_kind] == 0 ? 24 : 16;
	out->count = count;
	out->bytes = malloc(count * out->width + 1);
	out->values = values ? malloc(count * 8 + 8) : NULL;
	if (!out->bytes || (values && !out->values) ||
	    process_memory_read(memory->pid, first, out->bytes, count * out->width) ||
	    (values && process_memory_read(memory->pid, values, out->values, count * 8)))
		return false;
	return true;
}

static void free_entries(struct entries *entries)
{
	free(entries->bytes);
	free(entries->values);
}

static uint64_t entry_key(const struct entries *entries, size_t at)
{
	return process_memory_word(entries->bytes,
				   (int32_t)(at * entries->width + entries->width - 16));
}

static uint64_t entry_value(const struct entries *entries, size_t at)
{
	if (entries->values)
		return entries->values[at];
	return process_memory_word(entries->bytes,
				   (int32_t)(at * entries->width + entries->width - 8));
}

static bool read_dict(const struct pymemory *memory, uint64_t dict, struct entries *out)
{
	const struct pylayout *layout = memory->layout;
	unsigned char head[PYLAYOUT_DICT_BYTES];
	uint64_t values;

	memset(out, 0, sizeof(*out));
	if (!dict || process_memory_read(memory->pid, dict, head, sizeof(head)))
		return false;
	values = process_memory_word(head, layout->dict_values);
	if (values)
		values += (uint64_t)layout->values_first;
	return pyobj_read_entries(memory, process_memory_word(head, layout->dict_keys), values,
				  out);
}

bool pyobj_dict_each(const struct pymemory *memory, uint64_t dict,
		     bool (*each)(void *context, uint64_t key, uint64_t value), void *context)
{
	struct entries entries;
	bool ok = read_dict(memory, dict, &entries);

	for (size_t i = 0; ok && i < entries.count; i++)
		if (entry_key(&entries, i) && entry_value(&entries, i) &&
		    !each(context, entry_key(&entries, i), entry_value(&entries, i)))
			break;
	free_entries(&entries);
	return ok;
}

/* The index of an ASCII key; -1: none. All keys are read at once, because there may be
   thousands. */
static ssize_t find_key(const struct pymemory *memory, const struct entries *entries,
			const char *key)
{
	size_t head = (size_t)memory->layout->unicode_ascii_size, length = strlen(key);
	size_t each = head + length;
	struct process_memory_batch batch = { 0 };
	unsigned char *bytes = malloc(entries->count * each + 1);
	ssize_t found = -1;

	for (size_t i = 0; bytes && i < entries->count; i++)
		process_memory_batch_add(&batch, entry_key(entries, i), bytes + i * each, each);
	if (bytes && batch.count == entries->count &&
	    !process_memory_batch_read(&batch, memory->pid))
		for (size_t i = 0; found < 0 && i < entries->count; i++)
			if (batch.parts[i].ok &&
			    process_memory_word(bytes + i * each, memory->layout->unicode_length) ==
				    length &&
			    !memcmp(bytes + i * each + head, key, length))
				found = (ssize_t)i;
	process_memory_batch_fini(&batch);
	free(bytes);
	return found;
}

static uint64_t find_value(const struct pymemory *memory, const struct entries *entries,
			   const char *key)
{
	ssize_t at = find_key(memory, entries, key);

	return at < 0 ? 0 : entry_value(entries, (size_t)at);
}

uint64_t pyobj_dict_get(const struct pymemory *memory, uint64_t dict, const char *key)
{
	struct entries entries;
	uint64_t value = read_dict(memory, dict, &entries) ? find_value(memory, &entries, key) : 0;

	free_entries(&entries);
	return value;
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* The storage of an instance's attributes: a dict, or an array of values for the keys of its
   type. */
static void find_attributes(const struct pymemory *memory, uint64_t object, uint64_t flags,
			    uint64_t *out_dict, uint64_t *out_values)
{
	uint64_t before[2] = { 0 }; /* the words at -32 and -24 */

	*out_dict = *out_values = 0;
	if (!(flags & FLAG_MANAGED_DICT) ||
	    process_memory_read(memory->pid, object - 32, before, sizeof(before)))
		return;
	if (memory->layout->minor <= 11) {
		*out_values = before[0];
		*out_dict = before[1];
	} else if (memory->layout->minor == 12) {
		if (before[1] & 1)
			*out_values = before[1] + 1;
		else
			*out_dict = before[1];
	} else {
		*out_dict = before[1];
		if (!*out_dict && flags & FLAG_INLINE_VALUES)
			*out_values = object + 16 + (uint64_t)memory->layout->values_first;
	}
}

uint64_t pyobj_attribute(const struct pymemory *memory, uint64_t object, const char *name)
{
	const struct pylayout *layout = memory->layout;
	uint64_t type = process_memory_pointer(memory->pid, object + (uint64_t)layout->object_type);
	uint64_t flags = type ? process_memory_pointer(memory->pid,
						       type + (uint64_t)layout->type_flags)
			      : 0;
	uint64_t dict, values, value = 0, keys;
	struct entries entries;

	find_attributes(memory, object, flags, &dict, &values);
	if (!values)
		return dict ? pyobj_dict_get(memory, dict, name) : 0;
	keys = process_memory_pointer(memory->pid, type + (uint64_t)layout->type_cached_keys);
	if (pyobj_read_entries(memory, keys, values, &entries))
		value = find_value(memory, &entries, name);
	free_entries(&entries);
	return value;
}

/* ---- repr ------------------------------------------------------------------------------------ */

bool pyobj_type(const struct pymemory *memory, uint64_t object, char *out, size_t out_bytes)
{
	uint64_t type = process_memory_pointer(memory->pid,
					       object + (uint64_t)memory->layout->object_type);
	uint64_t name = type ? process_memory_pointer(memory->pid,
						      type + (uint64_t)memory->layout->type_name)
			     : 0;
	ssize_t got = name ? process_memory_read_some(memory->pid, name, out, out_bytes) : -1;

	if (got <= 0)
		return false;
	out[out_bytes - 1] = '\0';
	if (memchr(out, '\0', (size_t)got) == NULL)
		return false;
	for (const char *c = out; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			return false;
	return out[0] != '\0';
}

static void pyobj_add_text(const struct pymemory *memory, uint64_t object, struct buf *out,
			   size_t most)
{
	char text[4096];
	size_t room = most + 8 < sizeof(text) ? most + 8 : sizeof(text);
	ssize_t got = pyobj_text(memory, object, text, room);
	size_t keep;

	if (got < 0) {
		buf_text(out, "?");
		return;
	}
	keep = (size_t)got > most ? most : (size_t)got;
	while (keep < (size_t)got && keep && (text[keep] & 0xc0) == 0x80)
		keep--;
	buf_char(out, '\'');
	for (size_t i = 0; i < keep; i++) {
		if (text[i] == '\n')
			buf_text(out, "\\n");
		else if (text[i] == '\'' || text[i] == '\\')
			buf_print(out, "\\%c", text[i]);
		else if ((unsigned char)text[i] < ' ' || text[i] == 127)
			buf_print(out, "\\x%02x", (unsigned char)text[i]);
		else
			buf_char(out, text[i]);
	}
	buf_text(out, keep < (size_t)got ? "…'" : "'");
}

/* Numbers of 30-bit digits; beyond 18 decimal digits, their number of bits. */
static void add_integer(const struct pymemory *memory, uint64_t object, struct buf *out)
{
	const struct pylayout *layout = memory->layout;
	unsigned char head[PYLAYOUT_LONG_BYTES];
	uint32_t digit[3] = { 0 };
	uint64_t tag, count, value;
	bool negative;

	if (process_memory_read(memory->pid, object, head, sizeof(head))) {
		buf_text(out, "?");
		return;
	}
	tag = process_memory_word(head, layout->long_size);
	negative = layout->minor <= 11 ? (int64_t)tag < 0 : (tag & 3) == 2;
	count = layout->minor <= 11 ? (negative ? -tag : tag) : tag >> 3;
	if (count > 2) {
		buf_print(out, "%s<int of about %" PRIu64 " bits>", negative ? "-" : "",
			  count * 30);
		return;
	}
	memcpy(digit, head + layout->long_digit, count * 4);
	value = (uint64_t)digit[1] << 30 | digit[0];
	buf_print(out, "%s%" PRIu64, negative ? "-" : "", value);
}

static void add_float(const struct pymemory *memory, uint64_t object, struct buf *out)
{
	uint64_t bits = process_memory_pointer(memory->pid,
					       object + (uint64_t)memory->layout->float_value);
	char text[40];
	double value;

	memcpy(&value, &bits, 8);
	/* The shortest text that parses to the same number, like repr(). */
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (isnan(value) || strtod(text, NULL) == value)
			break;
	}
	buf_text(out, text);
	if (isfinite(value) && !strpbrk(text, ".en"))
		buf_text(out, ".0");
}

static void add_sized(const struct pymemory *memory, uint64_t object, const char *type,
		      int32_t offset, const char *of, struct buf *out)
{
	uint64_t count = process_memory_pointer(memory->pid, object + (uint64_t)offset);

	buf_print(out, "<%s of %" PRIu64 " %s>", type, count, of);
}

void pyobj_repr(const struct pymemory *memory, uint64_t object, struct buf *out, size_t most)
{
	const struct pylayout *layout = memory->layout;
	char type[128];

	if (!pyobj_type(memory, object, type, sizeof(type)))
		buf_text(out, "?");
	else if (!strcmp(type, "str"))
		pyobj_add_text(memory, object, out, most);
	else if (!strcmp(type, "int"))
		add_integer(memory, object, out);
	else if (!strcmp(type, "bool"))
		buf_text(out, process_memory_pointer(memory->pid,
						     object + (uint64_t)layout->long_digit) &
					      1
				      ? "True"
				      : "False");
	else if (!strcmp(type, "float"))
		add_float(memory, object, out);
	else if (!strcmp(type, "NoneType"))
		buf_text(out, "None");
	else if (!strcmp(type, "list") || !strcmp(type, "tuple"))
		add_sized(memory, object, type, layout->var_size, "items", out);
	else if (!strcmp(type, "dict"))
		add_sized(memory, object, type, layout->dict_used, "items", out);
	else if (!strcmp(type, "set") || !strcmp(type, "frozenset"))
		add_sized(memory, object, type, layout->set_used, "items", out);
	else if (!strcmp(type, "bytes"))
		add_sized(memory, object, type, layout->var_size, "bytes", out);
	else
		buf_print(out, "<%s>", type);
}
