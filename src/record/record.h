/*
 * Internals of libkymo. It runs in the recorded program: libc only, no malloc, no locks,
 * no threads, no signal handlers. A failure drops rows, counts them, and changes nothing else.
 *
 *	process.c   on and off, the control page, fork
 *	mapfile.c   mapped files that grow
 *	names.c     strings to ids           threads.c   the thread table
 *	lane.c      what a thread holds      stream.c    rings and chains, and their pool
 *	totals.c    exact totals per region  region.c rows.c table.c   the public calls
 *	ranges.c    open zones that are not on a thread's stack
 *	region_names.c   names made at run time
 *	region_totals.c  totals for the program itself
 *	pools.c     memory pools marked for another tool
 *	snapshot.c snapshot_file.c   a snapshot   capture.c   a capture
 *	cost.c      the cost of recording
 *	config.c    settings changed by the program   late_load.c   libraries loaded later
 *	device/     devices: record/device/device.h
 */
#ifndef KYMO_RECORD_RECORD_H
#define KYMO_RECORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kymo/atomic.h>

#include "base/error.h"
#include "base/format.h"
#include "base/schema.h"
#include "record/adapter.h"

/* ---- process.c --------------------------------------------------------------------------- */

struct kymo__process {
	struct kymo_control *control; /* mapped; NULL before recording is set up */
	pid_t pid;
	bool rank_inherited; /* a forked child has not looked at its own environment yet */
	bool totals; /* KYMO_TOTALS=off turns them off, to measure their cost */
	bool ending; /* kymo__mark_last() was called; atomic */
	uint64_t budget_bytes;
	uint64_t ticks_per_ms; /* approximate; for pauses between attempts */
	char run_dir[KYMO_PATH_BYTES];
	char dir[KYMO_PATH_BYTES]; /* of this process, in run_dir */
};
extern struct kymo__process kymo__process;

/* True if rows can be written now. Sets recording up again in a forked child. Never blocks. */
bool kymo__process_ready(void);
/* For the collector: records as a process of the given role in an existing run. */
KYMO__EXPORT int kymo__enable_at(const char *run_dir, enum kymo_role role, struct kymo_error *err);
/* Counts a dropped row for which there is no stream. */
void kymo__lost(uint32_t table, enum kymo_drop cause);
/* Reads the rank of a forked child. Not from an allocator's hook: the environment may be the very
   block that is being moved. */
void kymo__process_learn_rank(void);
/* Rank, number of ranks, local rank and attempt of the environment. */
void kymo__process_take_rank(struct kymo_control *control);
/* Adds a clock pair if the last one is older than a second. */
void kymo__process_tick(uint64_t now_ticks);

/* config.c: changes a setting of this process (base/settings.h) and writes its kymo.config row. by:
   the origin of the change. Returns 0; -EINVAL and *err; -EAGAIN: recording is off. */
KYMO__EXPORT int kymo__configure(const char *key, const char *value, const char *by,
				 struct kymo_error *err);
/* config.c: writes a row of kymo.config. */
KYMO__EXPORT void kymo__config_row(const char *key, const char *old_value, const char *new_value,
				   const char *by);
/* For kymo's other libraries inside the program. The control page, or NULL; whether the user has
   ever marked steps or phases (KYMO__MARKED_*); adds time to a phase that the user does not
   mark. */
KYMO__EXPORT struct kymo_control *kymo__control(void);
KYMO__EXPORT uint32_t kymo__marked_by_user(void);
KYMO__EXPORT void kymo__add_phase(enum kymo_phase phase, uint64_t ticks);
#define KYMO__MARKED_STEPS 1u
#define KYMO__MARKED_PHASES 2u
/* rows.c: a hook that is called after a step or mark is recorded, on the recording thread; NULL
   removes it. kymo__moment() calls it for code that writes step rows itself. */
enum kymo__moment { KYMO__STEP_BEGAN, KYMO__STEP_ENDED, KYMO__MARKED };
KYMO__EXPORT void kymo__on_moment(void (*hook)(enum kymo__moment what, const char *name));
KYMO__EXPORT void kymo__moment(enum kymo__moment what, const char *name);

/* rows.c: kymo_mark() of a program that fails and ends: from here on its rows may exceed the budget
   and kymo's share of the file system, which are there for a program that continues. */
KYMO__EXPORT void kymo__mark_last(const char *name, const char *text);

/* late_load.c: initialises its fields of a new control page. */
void kymo__poll_begin(struct kymo_control *control);

/* cost.c: the cost of one zone in ticks, including its share of folding. */
uint64_t kymo__measure_own_cost(void);
/* cost.c: called when the lane of kymo__cost_lane_begin() is full. */
char *kymo__cost_lane_rewind(struct kymo__lane *lane);

/* ---- mapfile.c --------------------------------------------------------------------------- */

/* A file in the process's directory, mapped at its maximum size. Only [0, allocated) may be
   touched. */
struct kymo__mapfile {
	char *base; /* NULL: none */
	size_t reserved;
	size_t allocated; /* grows only; atomic */
};

/* Creates a new file, mode 0600. It is allocated, never sparse: a full tmpfs must not raise SIGBUS.
   Returns 0 or a negative errno. */
int kymo__mapfile_create(struct kymo__mapfile *file, const char *name, size_t reserve,
			 size_t initial);
/* Makes [0, need) usable. Thread-safe. */
int kymo__mapfile_grow(struct kymo__mapfile *file, const char *name, size_t need);
void kymo__mapfile_close(struct kymo__mapfile *file);
/* Completes a file header. The magic is stored last, so a reader sees a complete header or none. */
void kymo__mapfile_begun(void *head, const char *magic, size_t head_bytes);
/* Whether this process may allocate that many more bytes: within the budget, an eighth of the free
   space, and RLIMIT_FSIZE. */
bool kymo__room_for(size_t bytes, size_t file_bytes);
void kymo__unlink(const char *name); /* also subtracts its bytes from held_bytes */

/* ---- names.c, threads.c ------------------------------------------------------------------ */

/* Creates the files. A forked child copies its parent's, so that all ids stay valid. */
int kymo__names_open(bool forked);
uint32_t kymo__intern(const char *name, size_t name_bytes, const char *file, size_t file_bytes,
		      uint32_t line, uint32_t source, uint32_t instance);
/* The longest prefix of text[0, bytes) of at most `most` bytes that splits no UTF-8 character. */
size_t kymo__utf8_cut(const char *text, size_t bytes, size_t most);

int kymo__threads_open(void);
uint32_t kymo__thread_add(void); /* the calling thread; 0: the table is full */
void kymo__thread_rename(uint32_t thread, const char *name);
void kymo__thread_name_of(uint32_t thread, char out[KYMO_THREAD_NAME_BYTES]);
void kymo__thread_ended(uint32_t thread);

/* ---- streams ----------------------------------------------------------------------------- */

/* A table of this process: one of kymo's (schema.h) or of the user. */
struct kymo_table {
	uint32_t index; /* in kymo__tables */
	uint32_t state; /* 0 free, 1 being filled, 2 ready */
	uint32_t row_bytes; /* as stored: a multiple of 8 */
	uint32_t user_bytes; /* as appended */
	uint32_t thread_offset; /* of the first KYMO_THREAD column; UINT32_MAX: none */
	uint32_t column_count;
	char name[64];
	struct kymo_column_desc columns[KYMO_COLUMNS_MAX];
	uint64_t free_streams; /* a pool: see kymo/pool.h */
	uint64_t retry_ticks; /* do not try to create a stream before this; atomic */
	uint64_t ring_rows; /* least rows of its rings: kymo_keep_rows() */
};
extern struct kymo_table kymo__tables[KYMO_TABLES_MAX];
void kymo__tables_init(void); /* kymo's own; once */
void kymo__tables_name_losses(void); /* into the control page */

struct kymo__stream {
	char *next, *limit; /* as in struct kymo__lane, which has them while it holds zones */
	struct kymo_stream_live *live;
	struct kymo_open_stack *open;
	struct kymo__mapfile head, data, totals;
	struct kymo_table *table;
	uint64_t cap_rows; /* ring */
	uint64_t segment_first_row, segment_rows; /* chain: the segment being written */
	uint64_t retry_ticks; /* do not try to allocate before this */
	uint64_t *totals_head_count;
	uint16_t *slot_of_name; /* slot + 1 by name id; 0: none yet; 0xffff: no room */
	struct kymo__sums *sums; /* by slot, of the batch being folded */
	struct kymo__ranges *ranges; /* NULL: none has begun in it; atomic */
	uint32_t id;
	uint32_t next_free;
};

/* Takes a stream from the pool or creates one; NULL: not possible. The caller is its only writer
   until it returns it. */
struct kymo__stream *kymo__stream_take(struct kymo_table *table, uint32_t thread);
void kymo__stream_give(struct kymo__stream *stream);
/* The slow path: folds, moves the floor, wraps, grows, opens the next segment. Returns the next
   row, or NULL: the row is dropped and counted. Sets next and limit. */
char *kymo__stream_turn(struct kymo__stream *stream);
/* Iterates over the streams of all threads; *out is NULL for a stream that is being created. False:
   no more. */
bool kymo__stream_at(uint32_t index, const struct kymo__stream **out);
/* Forgets all streams, in a forked child. */
void kymo__streams_forget(void);
/* Frees memory: the oldest sealed segment of the stream that has most. False: there is none. */
bool kymo__streams_evict(void);

int kymo__totals_open(struct kymo__stream *stream);
void kymo__totals_close(struct kymo__stream *stream);
/* Sums for a stream of one region, for measurements: cost.c. */
struct kymo__sums *kymo__totals_scratch(void);
void kymo__totals_fold(struct kymo__stream *stream, uint64_t head);

/* ---- lanes ------------------------------------------------------------------------------- */

/* Open regions per thread beyond the 64 of the mapped stack. Untouched pages cost nothing. */
#define KYMO__DEEP 65472
#define KYMO__STEPS 4

struct kymo__step {
	uint32_t name, number, running, reserved;
	uint64_t start_ticks;
	uint64_t phase_ticks[KYMO_PHASE_COUNT];
};

struct kymo__full_lane {
	struct kymo__lane hot; /* first: inline code sees only this */
	uint32_t next_free;
	uint32_t text_number;
	uint32_t range_thread; /* the entry of its ranges; 0: none yet */
	uint32_t kept_regions; /* among its ranges */
	struct kymo__stream *streams[KYMO_TABLES_MAX]; /* by table; [SCHEMA_ZONES] is always set */
	struct kymo__step steps[KYMO__STEPS];
	struct kymo_open_entry deep[KYMO__DEEP];
};

static inline struct kymo__full_lane *kymo__full(struct kymo__lane *lane)
{
	return (struct kymo__full_lane *)(void *)lane;
}

/* The calling thread's lane; NULL: none, and a row of the table is counted as dropped. */
struct kymo__full_lane *kymo__lane_for(uint32_t table);
void kymo__lanes_init(void);
void kymo__lanes_forget(void);

/* Before the thread returns its lane: its regions are gone. */
void kymo__region_thread_ends(struct kymo__full_lane *lane);

/* ---- ranges.c ---------------------------------------------------------------------------- */

/* A region that outlasts its scope becomes a range. */
void kymo__ranges_keep(struct kymo__full_lane *lane, const struct kymo_open_entry *entry);
/* Ends the latest such region of that name and flags. False: none that began after after_ticks. */
bool kymo__ranges_stop(struct kymo__full_lane *lane, uint32_t name, uint32_t flags,
		       uint64_t after_ticks, uint64_t end_ticks, uint64_t *out_start_ticks);
void kymo__ranges_thread_ends(struct kymo__full_lane *lane);
void kymo__ranges_rename(const struct kymo__full_lane *lane); /* the thread has a new name */
void kymo__ranges_forget(struct kymo__stream *stream);
/* False: the range has ended. */
bool kymo__range_start(uint64_t range, uint64_t *out_start_ticks, uint32_t *out_name);

/* Appends to any table except trace.zones. row has table->user_bytes. Returns 0; -EAGAIN: dropped
   and counted. */
int kymo__push(struct kymo_table *table, const void *row);

/* Inline kymo__append() for rows of three words without a thread column. False: call kymo__append()
   instead. */
static inline bool kymo__append_three(enum schema_id table, uint64_t a, uint64_t b, uint64_t c)
{
	struct kymo__lane *lane = kymo__lane;
	struct kymo__stream *stream = lane ? kymo__full(lane)->streams[table] : NULL;
	uint64_t *row;

	if (KYMO__UNLIKELY(!stream || lane->busy || stream->next == stream->limit))
		return false;
	lane->busy = 1;
	KYMO__BARRIER();
	row = (uint64_t *)(void *)stream->next;
	kymo__store_relaxed(&row[0], a);
	kymo__store_relaxed(&row[1], b);
	kymo__store_relaxed(&row[2], c);
	stream->next = (char *)(void *)(row + 3);
	/* Publishes the row; pairs with the acquire of readers. */
	kymo__store_release(&stream->live->head, stream->live->head + 1);
	KYMO__BARRIER();
	lane->busy = 0;
	return true;
}

#endif
