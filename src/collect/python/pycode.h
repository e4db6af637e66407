/*
 * A cache of functions of another process, by the address of their code object. Addresses are
 * reused, so an entry is valid only while the head of the object is the same byte for byte; names
 * and lines are read again from time to time.
 */
#ifndef KYMO_COLLECT_PYTHON_PYCODE_H
#define KYMO_COLLECT_PYTHON_PYCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "collect/python/pyobj.h"
#include "collect/native/process_memory.h"

#define PYCODE_HEAD_BYTES 144 /* up to co_linetable, in all versions */
#define PYCODE_HEAD_MOST PYLAYOUT_CODE_BYTES

struct pycode {
	uint64_t address;
	unsigned char head[PYCODE_HEAD_MOST]; /* as read, without fields that change at run time */
	char *name; /* qualified */
	char *file;
	int first_line;
	uint32_t units; /* of code, two bytes each */
	uint32_t frame_bytes; /* on the data stack; 0: unknown */
	bool internal; /* of the interpreter, between a class that is called and its __init__ */
	unsigned char *lines;
	size_t line_bytes;
	uint64_t checked_ns;
	uint32_t serial; /* of this content: a new function at the same address gets a new serial */
	uint32_t last_line_at; /* cache of one entry: unit + 2 */
	int last_line;
	uint32_t name_id; /* used by the sampler; 0: none yet */
	struct pycode *retired; /* replaced entries stay valid until pycode_forget() */
};

struct pycode_cache {
	struct pycode **codes; /* by number of the index */
	size_t room;
	struct intern index; /* of addresses */
	struct pycode *retired;
	uint32_t next_serial;
	size_t bytes; /* of all code objects */
	uint64_t read_anew; /* number of reads of code objects, for the benchmarks */
};

/* Buffer for the head of a code object in a batch. */
struct pycode_wanted {
	uint64_t address;
	unsigned char head[PYCODE_HEAD_MOST];
	const struct pycode *code; /* NULL: not a code object */
	bool used; /* a frame refers to it; others are not resolved */
};

size_t pycode_head_bytes(const struct pylayout *layout);
/* Fills .code of all wanted, whose heads were just read (.address is 0 if that failed). */
void pycode_resolve(struct pycode_cache *cache, const struct pymemory *memory,
		    struct pycode_wanted *wanted, size_t count, uint64_t now_ns);
/* The line of instruction `unit` (-1: before the first); 0: none. */
int pycode_line(const struct pycode *code, int64_t unit);
/* Frees replaced entries. Pointers from an earlier resolve become invalid. */
void pycode_forget(struct pycode_cache *cache);
void pycode_fini(struct pycode_cache *cache);

/* Decodes a line table of 3.11 and later (PEP 626, Objects/locations.md). */
int pycode_decode_line(const unsigned char *lines, size_t bytes, int first_line, int64_t unit);

#endif
