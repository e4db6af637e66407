/*
 * A recording, opened: a live directory, a dead one, or a snapshot file, told apart by content. (A
 * packed file is a DuckDB database: store_kind() recognises it, tables/ opens it.)
 *
 * Opening takes one snapshot in time of everything: heads, rings, names, threads, totals. What the
 * program records later is not seen; a second store_open() sees it. So all numbers of one recording
 * agree: emitted = kept + overwritten + dropped, for each stream.
 *
 * Everything read is hostile: bad files are left out, each with a sentence in `problems`; only when
 * nothing can be read does store_open() fail. No field below depends on DuckDB. Not thread-safe but
 * for store_read_rows().
 */
#ifndef KYMO_STORE_STORE_H
#define KYMO_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/format.h"

enum store_kind { STORE_NONE, STORE_DIRECTORY, STORE_SNAPSHOT, STORE_PACKED };

/* By content; STORE_NONE and a sentence for anything else (missing, foreign, newer). */
enum store_kind store_kind(const char *path, struct kymo_error *err);

/* ticks to ns since the recording's epoch: (ticks - base_ticks) * mult >> 32 + base_ns,
   saturating. */
struct store_clock {
	uint64_t base_ticks;
	int64_t base_ns;
	uint64_t mult; /* ns per tick, 32.32 fixed point */
	uint64_t error_ns; /* stated error */
	uint32_t kind; /* enum kymo_clock_kind */
};
int64_t store_clock_ns(const struct store_clock *clock, uint64_t ticks);
/* A duration; saturates at INT64_MAX. */
int64_t store_clock_span_ns(const struct store_clock *clock, uint64_t ticks);

/* Names of all processes in one list, without duplicates, valid UTF-8 (bad bytes replaced,
   NUL-ended). Index 0 is the empty name. */
struct store_name {
	const char *text;
	const char *file; /* "" : none */
	uint32_t text_bytes;
	uint32_t file_bytes;
	uint32_t line;
	uint32_t source;
	uint32_t instance;
};

/* Threads of all processes in one list; index 0 is "not known". */
struct store_thread {
	uint32_t process;
	int32_t tid;
	int64_t started_ns;
	int64_t ended_ns; /* -1: not ended, or not known */
	char name[64]; /* valid UTF-8 */
};

enum store_state { STORE_LIVE, STORE_ENDED, STORE_KILLED, STORE_LOST };

struct store_process {
	int32_t pid, ppid, rank, ranks;
	uint32_t role; /* enum kymo_role */
	/* live; ended (by itself: the destructor ran, or wait status known); killed by a signal;
	   lost: it is gone and nobody saw how */
	enum store_state state;
	int32_t wstatus; /* with wstatus_known */
	bool wstatus_known;
	int64_t started_ns; /* since the epoch */
	int64_t ended_ns; /* the last moment known of; for a live one the moment of opening */
	struct store_clock clock;
	uint32_t *name_of; /* local name id -> index of names; name_count entries; others are 0 */
	uint32_t name_count;
	uint32_t *thread_of; /* local thread index -> index of threads */
	uint32_t thread_count;
	struct kymo_control control; /* a checked copy; its texts are NUL-ended */
	char program[256];
	char *command; /* argv as one line, quoted where needed */
};

struct store_column {
	char name[32];
	uint32_t type;
	uint32_t offset;
	uint32_t bytes;
	char unit[20];
};

/* A run of rows that lie one after another, in memory or in a file that is held open. */
struct store_chunk {
	uint64_t first_row; /* number of the first one in its stream */
	uint64_t rows;
	const unsigned char *memory; /* NULL: read by store_read_rows() */
	int fd; /* -1: too many would be open; store_read_rows() opens it again */
	uint64_t offset;
	const void *reopen; /* private */
};

struct store_open_zone {
	uint32_t name; /* index of names */
	uint32_t thread; /* index of threads */
	uint32_t depth;
	int64_t start_ns;
};

/* Exact totals of one region in one stream, what was not folded yet included. */
struct store_total {
	uint32_t name; /* index of names */
	uint64_t count;
	uint64_t sum_ticks, child_ticks, min_ticks, max_ticks;
	double square_ticks;
	const uint64_t *histogram; /* KYMO_HIST_BUCKETS counts; NULL: none was kept */
};

struct store_stream {
	char table[64];
	uint32_t process; /* index */
	uint32_t id;
	uint32_t row_bytes;
	uint32_t column_count;
	struct store_column columns[KYMO_COLUMNS_MAX];
	uint32_t keep;
	uint64_t emitted, kept, overwritten, dropped_total;
	uint64_t dropped[KYMO_DROP_CAUSE_COUNT];
	struct store_chunk *chunks; /* kept rows, oldest first */
	size_t chunk_count;
	struct store_open_zone *open_zones;
	size_t open_count;
	uint32_t open_deeper; /* open zones beyond KYMO_OPEN_MAX */
	struct store_total *totals;
	size_t total_count;
	uint64_t untotalled;
	bool without_file; /* no stream: only the losses of a table that never got one */
};

struct recording {
	enum store_kind kind;
	char path[KYMO_PATH_BYTES];
	bool live; /* some process of it runs */
	bool partial; /* something could not be read; problems says what */
	/* a checked copy; made up from a process where the file is missing */
	struct kymo_run_file run;
	char program[256];
	char *command;
	int64_t duration_ns; /* from the epoch to the last moment known of */
	struct store_process *processes;
	size_t process_count;
	struct store_stream *streams;
	size_t stream_count;
	struct store_name *names;
	size_t name_count;
	struct store_thread *threads;
	size_t thread_count;
	char **problems; /* sentences */
	size_t problem_count;
	void *arena; /* private */
};

/* path: a directory (either half of a supervised run) or a snapshot file. 0, or a negative errno
   and *err. */
int store_open(const char *path, struct recording **out, struct kymo_error *err);
void store_close(struct recording *recording); /* NULL is fine */

/* Copies rows [at, at + count) of the chunk; returns how many could be read (less: the file was
   cut). Any thread. */
uint64_t store_read_rows(const struct store_stream *stream, const struct store_chunk *chunk,
			 uint64_t at, uint64_t count, void *out);

/* ---- finding (store/discover.c) ---- */

struct store_entry {
	char path[KYMO_PATH_BYTES];
	enum store_kind kind;
	enum store_state state;
	int32_t pid; /* of the target; 0: not known */
	int32_t wstatus;
	bool wstatus_known;
	bool ran_on; /* the recording has ended, by kymo attach; the program had not */
	uint64_t started_unix_ns;
	uint64_t ended_unix_ns; /* 0: runs */
	uint64_t bytes; /* both halves */
	char program[256];
	char name[128]; /* that kymo run -n gave it; "": none */
	char unreadable[256]; /* "" or why it cannot be read */
};

/* All recordings in KYMO_DIR, the working directory and the per-user index, newest first; live ones
   before dead ones. Caller frees *out. */
int store_list(struct store_entry **out, size_t *out_count, struct kymo_error *err);

/* TARGET of the command line (a path, a pid, a name, "latest", NULL for latest) to a path that
   store_kind() can take. A name, given by kymo run -n or its directory's or file's, means the
   newest that has it. */
int store_resolve(const char *target, char *out_path, size_t out_bytes, struct kymo_error *err);
/* The same for what cannot be undone: a name that several have means none of them. */
int store_resolve_only(const char *target, char *out_path, size_t out_bytes,
		       struct kymo_error *err);
/* "4711", or "pid 4711" as kymo ls prints it. */
bool store_is_pid(const char *target, int32_t *out_pid);
/* The one of a list that TARGET means by its name; NULL: none, or the word means something else. */
const struct store_entry *store_called(const char *name, const struct store_entry *entries,
				       size_t count);

/* Remembers a recording outside KYMO_DIR in the per-user index ($XDG_STATE_HOME/kymo/index, one
   path a line). */
int store_remember(const char *path, struct kymo_error *err);

/* Removes a recording, both halves; refuses a live one (-EBUSY) and what is not a recording. */
int store_remove(const char *path, struct kymo_error *err);

/* Removes dead recordings of KYMO_DIR, oldest first, until they take at most a tenth of its file
   system. Returns how many were removed. Never touches a live one. */
int store_prune(void);

#endif
