#include "collect/python/pycode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define CHECK_AGAIN_NS 1000000000ull /* age at which names and lines are read again */
#define LINE_BYTES_MOST (1u << 20)
#define FLAG_INTERNAL 0x2000000 /* CO_NO_MONITORING_EVENTS, since 3.13 */
#define UNITS_MOST (1u << 26)
#define CACHE_BYTES_MOST (256u << 20) /* of names and lines; further functions are not read */

/* ---- lines ----------------------------------------------------------------------------------- */

struct varint {
	const unsigned char *at, *end;
};

static uint32_t read_varint(struct varint *in)
{
	uint32_t value = 0, shift = 0;

	while (in->at < in->end) {
		unsigned char byte = *in->at++;

		if (shift < 32)
			value |= (uint32_t)(byte & 63) << shift;
		shift += 6;
		if (!(byte & 64))
			break;
	}
	return value;
}

static int read_signed(struct varint *in)
{
	uint32_t value = read_varint(in);

	return value & 1 ? -(int)(value >> 1) : (int)(value >> 1);
}

/* A damaged table may lead anywhere; the sum of signed numbers must not overflow. */
static int add_wrapping(int line, int difference)
{
	return (int)((unsigned)line + (unsigned)difference);
}

enum { LOCATION_ONE_LINE = 10, LOCATION_NO_COLUMNS = 13, LOCATION_LONG = 14, LOCATION_NONE = 15 };

int pycode_decode_line(const unsigned char *lines, size_t bytes, int first_line, int64_t unit)
{
	struct varint in = { lines, lines + bytes };
	int line = first_line;
	int64_t at = 0;

	if (unit < 0)
		return first_line;
	while (in.at < in.end) {
		unsigned char head = *in.at++;
		unsigned kind = head >> 3 & 15;

		if (kind == LOCATION_LONG || kind == LOCATION_NO_COLUMNS)
			line = add_wrapping(line, read_signed(&in));
		else if (kind >= LOCATION_ONE_LINE && kind < LOCATION_NO_COLUMNS)
			line = add_wrapping(line, (int)kind - LOCATION_ONE_LINE);
		at += (head & 7) + 1;
		if (unit < at)
			return kind == LOCATION_NONE ? 0 : line;
		while (in.at < in.end && !(*in.at & 128))
			in.at++;
	}
	return 0;
}

int pycode_line(const struct pycode *code, int64_t unit)
{
	struct pycode *mine = (struct pycode *)code; /* caches the last line */

	if (unit < -1 || unit > (int64_t)code->units)
		return 0;
	if (mine->last_line_at != (uint32_t)(unit + 2)) {
		mine->last_line = pycode_decode_line(code->lines, code->line_bytes,
						     code->first_line, unit);
		mine->last_line_at = (uint32_t)(unit + 2);
	}
	return code->last_line;
}

/* ---- reading --------------------------------------------------------------------------------- */

size_t pycode_head_bytes(const struct pylayout *layout)
{
	size_t bytes = (size_t)layout->code_linetable + 8;

	return bytes <= PYCODE_HEAD_MOST ? bytes : PYCODE_HEAD_MOST;
}

/* The reference count changes at any time; 3.11 has a warm-up counter next to the flags. */
static void blank_what_changes(const struct pylayout *layout, unsigned char *head)
{
	memset(head, 0, 8);
	if (layout->minor == 11)
		memset(head + layout->code_flags + 4, 0, 4);
}

static char *read_text(const struct pymemory *memory, uint64_t object)
{
	char text[4096];

	return pyobj_text(memory, object, text, sizeof(text)) < 0 ? NULL : strdup(text);
}

static bool read_lines(const struct pymemory *memory, uint64_t object, struct pycode *code)
{
	uint64_t bytes = process_memory_pointer(memory->pid,
						object + (uint64_t)memory->layout->var_size);

	if (bytes > LINE_BYTES_MOST)
		return false;
	code->lines = malloc(bytes + 1);
	code->line_bytes = bytes;
	return code->lines &&
	       !process_memory_read(memory->pid, object + (uint64_t)memory->layout->bytes_value,
				    code->lines, bytes);
}

static uint32_t pycode_frame_bytes(const struct pylayout *layout, const unsigned char *head)
{
	if (layout->minor >= 14)
		return 0;
	if (layout->code_framesize >= 0)
		return (uint32_t)process_memory_int(head, layout->code_framesize) * 8u;
	return ((uint32_t)process_memory_int(head, layout->code_nlocalsplus) +
		(uint32_t)process_memory_int(head, layout->code_stacksize)) *
		       8u +
	       (uint32_t)layout->frame_localsplus;
}

static size_t bytes_of(const struct pycode *code)
{
	return sizeof(*code) + strlen(code->name) + strlen(code->file) + code->line_bytes;
}

static void free_code(struct pycode *code)
{
	if (!code)
		return;
	free(code->name);
	free(code->file);
	free(code->lines);
	free(code);
}

static struct pycode *read_code(const struct pymemory *memory, const struct pycode_wanted *wanted)
{
	const struct pylayout *layout = memory->layout;
	struct pycode *code = calloc(1, sizeof(*code));
	unsigned char again[PYCODE_HEAD_MOST];
	uint64_t units = process_memory_word(wanted->head, layout->var_size);
	size_t bytes = pycode_head_bytes(layout);

	if (!code)
		return NULL;
	code->address = wanted->address;
	memcpy(code->head, wanted->head, bytes);
	code->name = read_text(memory, process_memory_word(wanted->head, layout->code_qualname));
	code->file = read_text(memory, process_memory_word(wanted->head, layout->code_filename));
	code->first_line = process_memory_int(wanted->head, layout->code_firstlineno);
	code->units = (uint32_t)units;
	code->frame_bytes = pycode_frame_bytes(layout, wanted->head);
	code->internal = process_memory_int(wanted->head, layout->code_flags) & FLAG_INTERNAL;
	if (!code->name || !code->file || units > UNITS_MOST ||
	    !read_lines(memory, process_memory_word(wanted->head, layout->code_linetable), code) ||
	    process_memory_read(memory->pid, wanted->address, again, bytes))
		goto bad;
	blank_what_changes(layout, again);
	if (!memcmp(again, code->head, bytes))
		return code;
bad:
	free_code(code);
	return NULL;
}

/* ---- the cache ------------------------------------------------------------------------------- */

static bool same_address(const void *codes, uint32_t number, const void *address)
{
	return ((struct pycode *const *)codes)[number]->address == *(const uint64_t *)address;
}

static bool same_content(const struct pycode *a, const struct pycode *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->file, b->file) &&
	       a->line_bytes == b->line_bytes && !memcmp(a->lines, b->lines, a->line_bytes);
}

/* Keeps a code object in the place of its address; an older one there is retired. NULL: no memory,
   and it is freed. */
static struct pycode *keep_code(struct pycode_cache *cache, uint32_t number, uint64_t hash,
				struct pycode *code)
{
	if (cache->bytes > CACHE_BYTES_MOST) {
		free_code(code);
		return NULL;
	}
	if (number != INTERN_NONE) {
		cache->codes[number]->retired = cache->retired;
		cache->retired = cache->codes[number];
	} else if (!grow((void **)&cache->codes, &cache->room, cache->index.count, sizeof(code)) ||
		   (number = intern_add(&cache->index, hash)) == INTERN_NONE) {
		free_code(code);
		return NULL;
	}
	cache->bytes += bytes_of(code);
	code->serial = ++cache->next_serial;
	cache->codes[number] = code;
	return code;
}

static const struct pycode *python_pycode_resolve(struct pycode_cache *cache,
						  const struct pymemory *memory,
						  struct pycode_wanted *wanted, uint64_t now_ns)
{
	uint64_t hash = intern_hash_number(0, wanted->address);
	uint32_t number = intern_find(&cache->index, hash, same_address, cache->codes,
				      &wanted->address);
	struct pycode *known = number == INTERN_NONE ? NULL : cache->codes[number], *code;
	bool same = known && !memcmp(known->head, wanted->head, pycode_head_bytes(memory->layout));

	if (same && now_ns - known->checked_ns < CHECK_AGAIN_NS)
		return known;
	code = read_code(memory, wanted);
	cache->read_anew++;
	if (!code)
		return NULL;
	code->checked_ns = now_ns;
	if (same && same_content(known, code)) {
		known->checked_ns = now_ns;
		free_code(code);
		return known;
	}
	return keep_code(cache, number, hash, code);
}

void pycode_resolve(struct pycode_cache *cache, const struct pymemory *memory,
		    struct pycode_wanted *wanted, size_t count, uint64_t now_ns)
{
	for (size_t i = 0; i < count; i++) {
		wanted[i].code = NULL;
		if (!wanted[i].address || !wanted[i].used)
			continue;
		blank_what_changes(memory->layout, wanted[i].head);
		wanted[i].code = python_pycode_resolve(cache, memory, &wanted[i], now_ns);
	}
}

void pycode_forget(struct pycode_cache *cache)
{
	while (cache->retired) {
		struct pycode *code = cache->retired;

		cache->retired = code->retired;
		cache->bytes -= bytes_of(code);
		free_code(code);
	}
}

void pycode_fini(struct pycode_cache *cache)
{
	pycode_forget(cache);
	for (size_t i = 0; i < cache->index.count; i++)
		free_code(cache->codes[i]);
	free(cache->codes);
	intern_fini(&cache->index);
	memset(cache, 0, sizeof(*cache));
}
