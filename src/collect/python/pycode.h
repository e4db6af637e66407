/*
 * Functions of another process, remembered by the address of their code object. Addresses are used
 * again, so what is remembered counts only while the head of the object is the same byte for byte;
 * once in a while the names and lines behind it are read again too.
 */
#ifndef KYMO_COLLECT_PYTHON_PYCODE_H
#define KYMO_COLLECT_PYTHON_PYCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collect/python/pyobj.h"
#include "collect/native/process_memory.h"

#define PYCODE_HEAD_BYTES 144 /* up to co_linetable, in all versions */
#define PYCODE_HEAD_MOST 192

struct pycode {
	uint64_t address;
	unsigned char
		head[PYCODE_HEAD_MOST]; /* as it was read, but for what changes while it runs */
	char *name; /* qualified */
	char *file;
	int first_line;
	uint32_t units; /* of two bytes, of code */
	uint32_t frame_bytes; /* on the data stack; 0: not known */
	unsigned char *lines;
	size_t line_bytes;
	uint64_t checked_ns;
	uint32_t
		serial; /* of this content: another function at the same address gets another one */
	uint32_t last_line_at; /* a cache of one: where, +2 */
	int last_line;
	uint32_t name_id; /* the sampler's; 0: none yet */
	struct pycode *retired; /* replaced entries stay valid until pycode_forget() */
};

struct pycode_cache {
	struct pycode **slots; /* open addressing, by address */
	size_t count, room;
	struct pycode *retired;
	uint32_t next_serial;
	uint64_t read_anew; /* how often a code object had to be read: for the benchmarks */
};

/* Where the head of a code object goes, for a batch. */
struct pycode_wanted {
	uint64_t address;
	unsigned char head[PYCODE_HEAD_MOST];
	const struct pycode *code; /* NULL: it is no code object (any more) */
};

size_t pycode_head_bytes(const struct pylayout *layout);
/* Fills .code of all wanted, whose heads have been read just now (.address is 0 for one that could
   not be read). */
void pycode_resolve(struct pycode_cache *cache, const struct pymemory *memory,
		    struct pycode_wanted *wanted, size_t count, uint64_t now_ns);
/* The line that runs when the last instruction is `unit` (-1: before the first); 0: none. */
int pycode_line(const struct pycode *code, int64_t unit);
/* Frees what was replaced: nobody holds a pointer from an earlier resolve. */
void pycode_forget(struct pycode_cache *cache);
void pycode_fini(struct pycode_cache *cache);

/* A table of lines of 3.11 and later (PEP 626, in the form of Objects/locations.md). */
int pycode_decode_line(const unsigned char *lines, size_t bytes, int first_line, int64_t unit);

#endif
