/*
 * Addresses of sampled code with their names, found once for each: the function from the symbol
 * table, then, if there is debug information, its line and the functions inlined there.
 */
#ifndef KYMO_COLLECT_PERF_NATIVE_PLACES_H
#define KYMO_COLLECT_PERF_NATIVE_PLACES_H

#include "base/intern.h"
#include "collect/perf/native_walk.h"
#include "collect/symbols/source_lines.h"

/* A function at a place. */
struct native_label {
	uint32_t name, line, module; /* numbers of names; line 0: not known */
	uint32_t flags; /* SCHEMA_NATIVE_* */
};

/* What a thread waits for in a futex, by a function on its stack. */
enum native_wait_kind {
	NATIVE_WAIT_UNKNOWN,
	NATIVE_WAIT_MUTEX,
	NATIVE_WAIT_RWLOCK,
	NATIVE_WAIT_CONDITION,
	NATIVE_WAIT_THREAD, /* another one that it joins */
	NATIVE_WAIT_BARRIER,
	NATIVE_WAIT_SEMAPHORE,
};
/* By a function's name, mangled or not. */
enum native_wait_kind native_wait_of(const char *symbol);
/* "a mutex", …: as in the column waits_for. */
const char *native_wait_word(enum native_wait_kind kind);

struct native_place {
	struct module *module; /* NULL: not in a file */
	uint64_t address; /* in the file; in the process if there is none */
	uint64_t function; /* where its function begins; 0: not known */
	pid_t pid; /* of a place that is not in a file */
	uint32_t label, label_count; /* in labels, innermost first */
	bool evaluates; /* the interpreter loop of CPython */
	bool begins; /* where programs and threads begin: the stack is complete */
	enum native_wait_kind waits;
	bool named; /* its labels are set */
};

struct native_places {
	struct native_place *list;
	size_t room;
	struct intern index;
	struct native_label *labels;
	size_t label_count, label_room;
	size_t named; /* places before this one have names */
	uint32_t *asking; /* those that want lines */
	size_t asking_count, asking_room;
	struct source_lines lines;
	struct lines_batch *late; /* the last question, while answers to it are owed; NULL: none */
	uint64_t functions, with_lines; /* for statistics */
};

/* The number of a frame's place; INTERN_NONE: out of memory. */
uint32_t native_places_of(struct native_places *places, struct address_space *space,
			  const struct native_frame *frame);
/* Names the places that have no name yet, and asks for their lines and inlined functions until the
   time. Reading the symbols of a large library takes a tenth of a second. */
void native_places_name(struct native_places *places, uint64_t deadline_ns);
/* Whether lines were asked for and may still come. */
bool native_places_wait(const struct native_places *places);
void native_places_fini(struct native_places *places);

#endif
