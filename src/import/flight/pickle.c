#include "import/json_scan.h"
#include "import/flight/pickle.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define VALUES_MOST 8000000u
#define DEEPEST 64
/* A value that is used again is written again: a few bytes could become any number. */
#define EXPANDS_RATIO 64u
#define EXPANDS_BYTES (64u << 20)
#define EXPANDS_MOST (1u << 30)

enum value_type {
	VALUE_NONE,
	VALUE_BOOLEAN,
	VALUE_NUMBER,
	VALUE_REAL,
	VALUE_TEXT,
	VALUE_LIST, /* and tuples */
	VALUE_DICT, /* items are keys and values in turn */
	VALUE_MARK, /* on the stack only */
};

struct value {
	union {
		int64_t number;
		double real;
		const char *text;
		uint32_t *items;
	} as;
	uint32_t count; /* bytes of a text, items of a container */
	uint32_t type;
};

struct pickle {
	const unsigned char *bytes;
	size_t count, at;
	struct value *values;
	size_t value_count, value_room;
	uint32_t *stack; /* numbers of values */
	size_t depth, stack_room;
	uint32_t *memo; /* number + 1; 0: none */
	size_t memo_count, memo_next;
	bool stopped;
	struct kymo_error *err;
};

/* ---- refusing ------------------------------------------------------------------------------ */

static const struct {
	unsigned char code;
	const char *name;
} refused[] = {
	{ 'c', "GLOBAL" },
	{ 0x93, "STACK_GLOBAL" },
	{ 'R', "REDUCE" },
	{ 'b', "BUILD" },
	{ 'i', "INST" },
	{ 'o', "OBJ" },
	{ 0x81, "NEWOBJ" },
	{ 0x92, "NEWOBJ_EX" },
	{ 0x82, "EXT1" },
	{ 0x83, "EXT2" },
	{ 0x84, "EXT4" },
	{ 'P', "PERSID" },
	{ 'Q', "BINPERSID" },
	{ 'I', "INT" },
	{ 'L', "LONG" },
	{ 'F', "FLOAT" },
	{ 'S', "STRING" },
	{ 'V', "UNICODE" },
	{ 'g', "GET" },
	{ 'p', "PUT" },
	{ '0', "POP" },
	{ '1', "POP_MARK" },
	{ '2', "DUP" },
	{ 0x8f, "EMPTY_SET" },
	{ 0x90, "ADDITEMS" },
	{ 0x91, "FROZENSET" },
	{ 0x96, "BYTEARRAY8" },
	{ 0x97, "NEXT_BUFFER" },
	{ 0x98, "READONLY_BUFFER" },
	{ 'T', "BINSTRING" },
	{ 'U', "SHORT_BINSTRING" },
};

static bool refuse_opcode(struct pickle *pickle, unsigned char code)
{
	const char *name = "an unknown opcode";

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (refused[i].code == code)
			name = refused[i].name;
	error_set(pickle->err, EPERM,
		  "byte %zu of the pickle is %s (0x%02x); only plain data is read, nothing is "
		  "executed",
		  pickle->at - 1, name, code);
	return false;
}

static bool pickle_fails(struct pickle *pickle, const char *why)
{
	error_set(pickle->err, EPROTO, "%s at byte %zu of the pickle", why, pickle->at);
	return false;
}

/* ---- values -------------------------------------------------------------------------------- */

/* A new value on the stack; NULL: no memory, or too many. */
static struct value *push_value(struct pickle *pickle, enum value_type type)
{
	struct value *value;

	if (pickle->value_count >= VALUES_MOST) {
		pickle_fails(pickle, "more than 8,000,000 values");
		return NULL;
	}
	if (!grow((void **)&pickle->values, &pickle->value_room, pickle->value_count,
		  sizeof(*pickle->values)) ||
	    !grow((void **)&pickle->stack, &pickle->stack_room, pickle->depth,
		  sizeof(*pickle->stack))) {
		error_set(pickle->err, ENOMEM, "no memory for a pickle");
		return NULL;
	}
	value = &pickle->values[pickle->value_count];
	*value = (struct value){ .type = type };
	pickle->stack[pickle->depth++] = (uint32_t)pickle->value_count++;
	return value;
}

static bool push_number(struct pickle *pickle, enum value_type type, int64_t number)
{
	struct value *value = push_value(pickle, type);

	if (value)
		value->as.number = number;
	return value;
}

static bool pickle_add_item(struct pickle *pickle, struct value *to, uint32_t item)
{
	if (!grow_short((void **)&to->as.items, to->count, sizeof(*to->as.items))) {
		error_set(pickle->err, ENOMEM, "no memory for a pickle");
		return false;
	}
	to->as.items[to->count++] = item;
	return true;
}

/* Where the values after the innermost mark begin; 0: there is no mark. */
static size_t after_mark(const struct pickle *pickle)
{
	for (size_t i = pickle->depth; i--;)
		if (pickle->values[pickle->stack[i]].type == VALUE_MARK)
			return i + 1;
	return 0;
}

/* ---- bytes --------------------------------------------------------------------------------- */

static bool pickle_take_bytes(struct pickle *pickle, size_t count, uint64_t *out)
{
	if (count > pickle->count - pickle->at)
		return pickle_fails(pickle, "it is truncated");
	*out = 0;
	for (size_t i = 0; i < count; i++)
		*out |= (uint64_t)pickle->bytes[pickle->at + i] << (8 * i);
	pickle->at += count;
	return true;
}

static bool pickle_take_text(struct pickle *pickle, size_t length_bytes)
{
	struct value *value;
	uint64_t bytes;

	if (!pickle_take_bytes(pickle, length_bytes, &bytes))
		return false;
	if (bytes > pickle->count - pickle->at)
		return pickle_fails(pickle, "it is truncated");
	value = push_value(pickle, VALUE_TEXT);
	if (!value)
		return false;
	value->as.text = (const char *)pickle->bytes + pickle->at;
	value->count = (uint32_t)bytes; /* a pickle is shorter than 4 GB */
	pickle->at += (size_t)bytes;
	return true;
}

static bool pickle_take_number(struct pickle *pickle, size_t bytes, bool is_signed)
{
	uint64_t number;

	if (!pickle_take_bytes(pickle, bytes, &number))
		return false;
	return push_number(pickle, VALUE_NUMBER,
			   is_signed ? (int64_t)(int32_t)(uint32_t)number : (int64_t)number);
}

/* Two's complement of any length; beyond 2^63 it is a double, as far as that goes. */
static bool take_long(struct pickle *pickle, size_t length_bytes)
{
	struct value *value;
	uint64_t length, number = 0;
	bool negative;

	if (!pickle_take_bytes(pickle, length_bytes, &length))
		return false;
	if (length > pickle->count - pickle->at)
		return pickle_fails(pickle, "it is truncated");
	negative = length && pickle->bytes[pickle->at + length - 1] & 0x80;
	if (length <= 8) {
		if (!pickle_take_bytes(pickle, (size_t)length, &number))
			return false;
		if (negative && length < 8)
			number |= ~UINT64_C(0) << (8 * length);
		return push_number(pickle, VALUE_NUMBER, (int64_t)number);
	}
	pickle->at += (size_t)length;
	value = push_value(pickle, VALUE_REAL);
	if (value)
		value->as.real = negative ? -1e300 : 1e300;
	return value;
}

static bool take_real(struct pickle *pickle)
{
	struct value *value;
	uint64_t bits = 0;

	if (pickle->count - pickle->at < 8)
		return pickle_fails(pickle, "it is truncated");
	for (int i = 0; i < 8; i++)
		bits = bits << 8 | pickle->bytes[pickle->at + (size_t)i];
	pickle->at += 8;
	value = push_value(pickle, VALUE_REAL);
	if (value)
		memcpy(&value->as.real, &bits, sizeof(bits));
	return value;
}

/* ---- containers ---------------------------------------------------------------------------- */

/* A tuple, list or dict of the values from `first` on, which leave the stack. */
static bool collect(struct pickle *pickle, size_t first, enum value_type type, bool marked)
{
	struct value made = { .type = type };
	struct value *value;

	for (size_t i = first; i < pickle->depth; i++)
		if (!pickle_add_item(pickle, &made, pickle->stack[i])) {
			free(made.as.items);
			return false;
		}
	pickle->depth = first - marked;
	value = push_value(pickle, type);
	if (!value) {
		free(made.as.items);
		return false;
	}
	*value = made;
	return true;
}

static bool collect_marked(struct pickle *pickle, enum value_type type)
{
	size_t first = after_mark(pickle);

	if (!first || (type == VALUE_DICT && (pickle->depth - first) % 2))
		return pickle_fails(pickle, "it is damaged");
	return collect(pickle, first, type, true);
}

static bool collect_last(struct pickle *pickle, size_t count)
{
	if (pickle->depth < count)
		return pickle_fails(pickle, "it is damaged");
	return collect(pickle, pickle->depth - count, VALUE_LIST, false);
}

/* Adds the values from `first` on to the container below them. */
static bool extend(struct pickle *pickle, size_t first, enum value_type type, bool marked)
{
	const size_t below = marked ? 2 : 1;
	uint32_t number;

	if (first < below || first > pickle->depth ||
	    (type == VALUE_DICT && (pickle->depth - first) % 2))
		return pickle_fails(pickle, "it is damaged");
	number = pickle->stack[first - below];
	if (pickle->values[number].type != type)
		return pickle_fails(pickle, "it is damaged");
	for (size_t i = first; i < pickle->depth; i++)
		if (!pickle_add_item(pickle, &pickle->values[number], pickle->stack[i]))
			return false;
	pickle->depth = first - marked;
	return true;
}

/* ---- memo ---------------------------------------------------------------------------------- */

static bool remember(struct pickle *pickle, uint64_t slot)
{
	if (!pickle->depth || slot > VALUES_MOST)
		return pickle_fails(pickle, "it is damaged");
	if (slot >= pickle->memo_count &&
	    !grow_zeroed((void **)&pickle->memo, &pickle->memo_count, (size_t)slot * 2 + 64,
			 sizeof(*pickle->memo))) {
		error_set(pickle->err, ENOMEM, "no memory for a pickle");
		return false;
	}
	pickle->memo[slot] = pickle->stack[pickle->depth - 1] + 1;
	return true;
}

static bool recall(struct pickle *pickle, uint64_t slot)
{
	if (slot >= pickle->memo_count || !pickle->memo[slot])
		return pickle_fails(pickle, "it is damaged");
	if (!grow((void **)&pickle->stack, &pickle->stack_room, pickle->depth,
		  sizeof(*pickle->stack))) {
		error_set(pickle->err, ENOMEM, "no memory for a pickle");
		return false;
	}
	pickle->stack[pickle->depth++] = pickle->memo[slot] - 1;
	return true;
}

static bool take_memo(struct pickle *pickle, size_t bytes, bool puts)
{
	uint64_t slot;

	if (!pickle_take_bytes(pickle, bytes, &slot))
		return false;
	return puts ? remember(pickle, slot) : recall(pickle, slot);
}

/* ---- opcodes ------------------------------------------------------------------------------- */

static bool take_proto(struct pickle *pickle)
{
	uint64_t version;

	if (!pickle_take_bytes(pickle, 1, &version))
		return false;
	return version <= 5 || pickle_fails(pickle, "an unknown protocol");
}

static bool take_opcode(struct pickle *pickle)
{
	const unsigned char code = pickle->bytes[pickle->at++];
	uint64_t ignored;

	switch (code) {
	case 0x80: return take_proto(pickle);
	case 0x95: return pickle_take_bytes(pickle, 8, &ignored); /* FRAME */
	case '.': return pickle->stopped = true;
	case 'N': return push_number(pickle, VALUE_NONE, 0);
	case 0x88: return push_number(pickle, VALUE_BOOLEAN, 1);
	case 0x89: return push_number(pickle, VALUE_BOOLEAN, 0);
	case 'J': return pickle_take_number(pickle, 4, true);
	case 'K': return pickle_take_number(pickle, 1, false);
	case 'M': return pickle_take_number(pickle, 2, false);
	case 0x8a: return take_long(pickle, 1);
	case 0x8b: return take_long(pickle, 4);
	case 'G': return take_real(pickle);
	case 'X':
	case 'B': return pickle_take_text(pickle, 4); /* B: bytes */
	case 0x8c:
	case 'C': return pickle_take_text(pickle, 1);
	case 0x8d:
	case 0x8e: return pickle_take_text(pickle, 8);
	case '(': return push_number(pickle, VALUE_MARK, 0);
	case '}': return push_value(pickle, VALUE_DICT);
	case ']':
	case ')': return push_value(pickle, VALUE_LIST);
	case 't':
	case 'l': return collect_marked(pickle, VALUE_LIST);
	case 'd': return collect_marked(pickle, VALUE_DICT);
	case 0x85:
	case 0x86:
	case 0x87: return collect_last(pickle, code - 0x84u);
	case 'a': return extend(pickle, pickle->depth - (pickle->depth > 0), VALUE_LIST, false);
	case 'e': return extend(pickle, after_mark(pickle), VALUE_LIST, true);
	case 's':
		return extend(pickle, pickle->depth > 2 ? pickle->depth - 2 : 0, VALUE_DICT, false);
	case 'u': return extend(pickle, after_mark(pickle), VALUE_DICT, true);
	case 'q': return take_memo(pickle, 1, true);
	case 'r': return take_memo(pickle, 4, true);
	case 0x94: return remember(pickle, pickle->memo_next++);
	case 'h': return take_memo(pickle, 1, false);
	case 'j': return take_memo(pickle, 4, false);
	default: return refuse_opcode(pickle, code);
	}
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static bool put_value(struct pickle *pickle, struct buf *out, uint32_t number, int depth);

static bool put_items(struct pickle *pickle, struct buf *out, const struct value *value, int depth)
{
	const bool dict = value->type == VALUE_DICT;
	const uint32_t count = value->count;
	const uint32_t *items = value->as.items;

	if (depth >= DEEPEST)
		return pickle_fails(pickle, "values nested deeper than 64");
	buf_char(out, dict ? '{' : '[');
	for (uint32_t i = 0; i < count; i++) {
		const bool key = dict && !(i & 1);
		const bool quoted = key && pickle->values[items[i]].type == VALUE_NUMBER;

		if (key && !quoted && pickle->values[items[i]].type != VALUE_TEXT)
			return pickle_fails(pickle, "a key that is neither a text nor a number");
		if (i)
			buf_char(out, dict && !key ? ':' : ',');
		if (quoted)
			buf_char(out, '"');
		if (!put_value(pickle, out, items[i], depth + 1))
			return false;
		if (quoted)
			buf_char(out, '"');
	}
	buf_char(out, dict ? '}' : ']');
	return true;
}

static bool put_value(struct pickle *pickle, struct buf *out, uint32_t number, int depth)
{
	const struct value *value = &pickle->values[number];

	if ((out->used > EXPANDS_BYTES && out->used / EXPANDS_RATIO > pickle->count) ||
	    out->used > EXPANDS_MOST)
		return pickle_fails(pickle, "values that expand to more than 64 times its size");
	switch (value->type) {
	case VALUE_NONE: buf_text(out, "null"); return true;
	case VALUE_BOOLEAN: buf_text(out, value->as.number ? "true" : "false"); return true;
	case VALUE_NUMBER: buf_print(out, "%" PRId64, value->as.number); return true;
	case VALUE_REAL:
		if (isfinite(value->as.real))
			buf_print(out, "%.17g", value->as.real);
		else
			buf_text(out, "null");
		return true;
	case VALUE_TEXT: json_put_text(out, value->as.text, value->count); return true;
	case VALUE_LIST:
	case VALUE_DICT: return put_items(pickle, out, value, depth);
	default: return pickle_fails(pickle, "it is damaged");
	}
}

/* ---- all of it ----------------------------------------------------------------------------- */

bool pickle_is(const char *bytes, size_t count)
{
	const unsigned char *at = (const unsigned char *)bytes;

	return count >= 3 && at[0] == 0x80 && at[1] >= 2 && at[1] <= 5 &&
	       (at[2] == 0x95 || strchr("}](ccNGXK)", at[2]) || at[2] >= 0x80);
}

int pickle_to_json(const char *bytes, size_t count, struct buf *out, struct kymo_error *err)
{
	struct kymo_error own = { 0 };
	struct pickle pickle = { .bytes = (const unsigned char *)bytes,
				 .count = count,
				 .err = err ? err : &own };
	bool ok = count < UINT32_MAX;

	while (ok && !pickle.stopped)
		ok = pickle.at < count ? take_opcode(&pickle)
				       : pickle_fails(&pickle, "it is truncated");
	if (ok && pickle.depth != 1)
		ok = pickle_fails(&pickle, "it is damaged");
	if (ok)
		ok = put_value(&pickle, out, pickle.stack[0], 0);
	if (ok && out->failed)
		ok = error_set(pickle.err, ENOMEM, "no memory for a pickle") == 0;
	for (size_t i = 0; i < pickle.value_count; i++)
		if (pickle.values[i].type == VALUE_LIST || pickle.values[i].type == VALUE_DICT)
			free(pickle.values[i].as.items);
	free(pickle.values);
	free(pickle.stack);
	free(pickle.memo);
	return ok ? 0 : -(pickle.err->code ? pickle.err->code : EFBIG);
}
