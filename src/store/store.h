/*
 * An open recording: a live or dead directory, or a snapshot file, recognised by content. (A packed
 * file is a DuckDB database, and a job of a lake is Parquet files: store_kind() recognises them,
 * tables/ opens them.)
 *
 * Opening takes one consistent picture of heads, rings, names, threads and totals. Rows that are
 * recorded later need another store_open(). So the numbers of a recording agree: for each stream,
 * emitted = kept + overwritten + dropped.
 *
 * All input is hostile. Bad files are skipped, each with a sentence in `problems`; store_open()
 * fails only if nothing can be read. Nothing here depends on DuckDB. Only store_read_rows() is
 * thread-safe.
 */
#ifndef KYMO_STORE_STORE_H
#define KYMO_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"

/* A job is a directory of recordings, which are opened as one: job.h. */
enum store_kind {
	STORE_NONE,
	STORE_DIRECTORY,
	STORE_SNAPSHOT,
	STORE_PACKED,
	STORE_JOB,
	STORE_LAKE /* a job of a lake: lake/lake_dir.h */
};
/* Kinds that only SQL reads: tables/ opens them, and store_open() refuses them. */
static inline bool store_kind_is_sql(enum store_kind kind)
{
	return kind == STORE_PACKED || kind == STORE_LAKE;
}

/* By content. STORE_NONE and *err for anything else: missing, foreign, newer. */
enum store_kind store_kind(const char *path, struct kymo_error *err);

/* ticks to ns since the recording's epoch: (ticks - base_ticks) * mult >> 32 + base_ns,
   saturating. From the ticks of a piece on, its base and mult count instead: the clock of a host
   that made a step (host_clocks.h). */
#define STORE_CLOCK_PIECES 7u
struct store_clock_piece {
	uint64_t base_ticks;
	int64_t base_ns;
	uint64_t mult;
};
struct store_clock {
	uint64_t base_ticks;
	int64_t base_ns;
	uint64_t mult; /* ns per tick, 32.32 fixed point */
	uint64_t error_ns; /* stated error */
	uint32_t kind; /* enum kymo_clock_kind */
	uint32_t piece_count; /* 0 but for hosts whose clock made a step */
	struct store_clock_piece pieces[STORE_CLOCK_PIECES]; /* in order of their ticks */
};
int64_t store_clock_ns(const struct store_clock *clock, uint64_t ticks);
/* A duration; saturates at INT64_MAX. */
int64_t store_clock_span_ns(const struct store_clock *clock, uint64_t ticks);
static inline double store_clock_tick_ns(const struct store_clock *clock)
{
	return clock_tick_ns(clock->mult);
}

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

/* Threads of all processes in one list; index 0: unknown. */
struct store_thread {
	uint32_t process;
	int32_t tid;
	int64_t started_ns;
	int64_t ended_ns; /* -1: not ended or unknown */
	char name[64]; /* valid UTF-8 */
};

/* UNKNOWN: of another host, which alone knows whether the process runs. */
enum store_state { STORE_LIVE, STORE_ENDED, STORE_KILLED, STORE_LOST, STORE_UNKNOWN };

struct store_process {
	int32_t pid, ppid, rank, ranks;
	int32_t local_rank, attempt; /* -1: unknown */
	uint32_t run; /* index of the recording's runs */
	uint32_t domain; /* processes of one domain share a clock: host_clocks.h */
	const char *host; /* "": unknown; of two processes with one pid they differ */
	uint32_t role; /* enum kymo_role */
	/* live; ended: the destructor ran, or the wait status is known; killed by a signal; lost:
	   gone without a known status */
	enum store_state state;
	int32_t wstatus; /* with wstatus_known */
	bool wstatus_known;
	int64_t started_ns; /* since the epoch */
	int64_t ended_ns; /* last known moment; for a live process the moment of opening */
	struct store_clock clock;
	uint32_t *name_of; /* local name id -> index of names; name_count entries; others are 0 */
	uint32_t name_count;
	uint32_t *thread_of; /* local thread index -> index of threads */
	uint32_t thread_count;
	struct kymo_control control; /* a checked copy; its texts are NUL-ended */
	char program[256];
	char *command; /* argv as one line, quoted as needed */
};

struct store_column {
	char name[32];
	uint32_t type;
	uint32_t offset;
	uint32_t bytes;
	char unit[20];
};

/* Consecutive rows, in memory or in an open file. */
struct store_chunk {
	uint64_t first_row; /* number of the first row in its stream */
	uint64_t rows;
	const unsigned char *memory; /* NULL: read by store_read_rows() */
	int fd; /* -1: too many open files; store_read_rows() reopens it */
	uint64_t offset;
	const void *reopen; /* private */
};

struct store_open_zone {
	uint32_t name; /* index of names */
	uint32_t thread; /* index of threads */
	uint32_t depth;
	int64_t start_ns;
};

/* Exact totals of one region in one stream, including rows that were not folded yet. */
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
	bool without_file; /* no stream: only the losses of a table without one */
};

/* How times of a host became those of the recording; NONE: not known, its wall clock counts. */
enum store_align { STORE_ALIGN_SAME, STORE_ALIGN_FITTED, STORE_ALIGN_NONE, STORE_ALIGN_REFUSED };

/* A piece of a host's clock: its own time t became t - offset_ns - drift * (t - t0_ns). */
struct store_host_clock {
	uint32_t domain;
	enum store_align method;
	int64_t t0_ns; /* own time from which it counts */
	int64_t offset_ns;
	double drift;
	int64_t error_ns; /* -1: unknown */
	uint32_t used; /* collectives */
	bool applied; /* false: times are as recorded */
	char reason[120]; /* of a refusal; "": none */
};

/* A run of the recording: one, or several if it is a job. */
struct store_run {
	char path[KYMO_PATH_BYTES];
	char host[80]; /* valid UTF-8; in a job it differs from others that share a pid */
	struct kymo_run_file run; /* a checked copy; filled from a process if the file is missing */
	char program[256];
	const char *command;
	int64_t started_ns; /* since the epoch of the recording; 0 unless it is a job */
	int64_t duration_ns; /* from its start to the last known moment */
	bool live; /* at least one process runs */
	bool elsewhere; /* it has not ended, and only another host knows whether it runs */
	int64_t age_ns; /* of its last data, by wall clocks; -1: it has ended */
	struct recording *recording; /* private: of a job */
};

struct recording {
	enum store_kind kind;
	char path[KYMO_PATH_BYTES];
	bool live; /* at least one process runs */
	bool partial; /* something could not be read; see problems */
	/* a checked copy; filled from a process if the file is missing. Of a job: its first */
	struct kymo_run_file run;
	char program[256];
	char *command;
	int64_t duration_ns; /* from the epoch to the last known moment */
	struct store_run *runs; /* at least one */
	size_t run_count;
	struct store_process *processes;
	size_t process_count;
	struct store_stream *streams;
	size_t stream_count;
	struct store_name *names;
	size_t name_count;
	struct store_thread *threads;
	size_t thread_count;
	struct store_host_clock *host_clocks; /* by domain */
	size_t host_clock_count;
	char **problems; /* sentences */
	size_t problem_count;
	void *arena; /* private */
};

/* path: a directory (either one of a supervised run), a job's directory or a snapshot file. Returns
   0, or a negative errno and *err. */
int store_open(const char *path, struct recording **out, struct kymo_error *err);
void store_close(struct recording *recording); /* NULL is fine */

/* The process of that pid that a collector watches, the last if it had several; NULL: it did not
   record. */
const struct store_process *store_target(const struct recording *recording, size_t collector,
					 int32_t pid);
/* Its rank, or else that of the collector itself, whose environment is that of its program; -1:
   none. */
int32_t store_target_rank(const struct recording *recording, size_t collector, int32_t pid);

/* Copies rows [at, at + count) of the chunk. Returns the number copied, which is less if the file
   was truncated. Thread-safe. */
uint64_t store_read_rows(const struct store_stream *stream, const struct store_chunk *chunk,
			 uint64_t at, uint64_t count, void *out);

/* ---- finding (store/discover.c) ---- */

struct store_entry {
	char path[KYMO_PATH_BYTES];
	enum store_kind kind;
	enum store_state state;
	int32_t pid; /* of the program; 0: unknown */
	int32_t wstatus;
	bool wstatus_known;
	bool ran_on; /* kymo attach ended; the program continued */
	uint64_t started_unix_ns;
	uint64_t ended_unix_ns; /* 0: still running */
	uint64_t bytes; /* in both directories */
	char program[256];
	char name[128]; /* of kymo run -n; "": none */
	char unreadable[256]; /* why it cannot be read, or "" */
	bool foreign; /* root has found it in a directory that another user can change */
	bool here; /* in the working directory, or recorded from it */
	uint32_t runs, live_runs; /* of a job: its recordings; those that run */
};

/* All recordings in KYMO_DIR, the working directory and the per-user index, newest first; live ones
   before dead ones. Caller frees *out. */
int store_list(struct store_entry **out, size_t *out_count, struct kymo_error *err);
/* Replaces recordings of a job in such a list by one entry for the job: while it runs, the list has
   its recordings in KYMO_DIR. */
void store_list_jobs(struct store_entry *entries, size_t *count);

/* TARGET of the command line (a path, a pid, a name, "latest", NULL for latest) to a path that
   store_kind() can take. A name, given by kymo run -n or its directory's or file's, means the
   newest that has it. The latest is the newest one of the working directory or recorded from it,
   else of the user: a program that runs elsewhere does not come before a run of this directory. */
int store_resolve(const char *target, char *out_path, size_t out_bytes, struct kymo_error *err);
/* The same for what cannot be undone: a name that several have means none of them, and foreign ones
   are not considered. */
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

struct store_removed {
	char other[KYMO_PATH_BYTES]; /* the second directory of the run, removed, too; "": none */
	char kept[KYMO_PATH_BYTES]; /* one that is named as such but does not name this one */
};
/* Removes a recording with both directories; the second only if each names the other. Refuses a
   live one (-EBUSY), other files, and what safe_path.h refuses. */
int store_remove_both(const char *path, struct store_removed *out, struct kymo_error *err);
int store_remove(const char *path, struct kymo_error *err);
/* Removes an empty directory. */
bool store_remove_empty(const char *path);

/* Removes dead recordings of KYMO_DIR, oldest first, until they take at most a tenth of its file
   system. Returns how many were removed. Never touches a live one. */
int store_prune(void);

#endif
