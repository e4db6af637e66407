/*
 * The file format: every byte of every file, except the snapshot's envelope
 * (base/files/snapshot_format.h). docs/format.md describes it in prose. Little endian; offsets are
 * from the start of the file.
 *
 *   RUN/                        a run: one program and its children
 *     run                       struct kymo_run_file
 *     p<pid>-<starttime>/       a process of the run
 *       control                 struct kymo_control: identity, settings, clock, losses
 *       names                   struct kymo_names_head, then struct kymo_name_entry[]
 *       text                    struct kymo_text_head, then bytes that name entries point into
 *       threads                 struct kymo_threads_head, then struct kymo_thread_entry[]
 *       s<id>.head              struct kymo_stream_head (one page), struct kymo_stream_live,
 *                               struct kymo_open_stack
 *       s<id>.totals            struct kymo_totals_head, then slots (only streams of zones)
 *       s<id>.<seq>             struct kymo_segment_head, then rows. Flight: one file (seq 0), a
 *                               ring of cap rows. Chain (keep=all): files in sequence; full ones
 *                               are sealed
 *       .spare<n>               a prepared file for the next segment, made by the collector; its
 *                               content does not count
 *
 * Only the recorded process writes, except for fields marked otherwise. Readers trust nothing: they
 * copy, then check (store/).
 */
#ifndef KYMO_BASE_FORMAT_H
#define KYMO_BASE_FORMAT_H

#include <stdint.h>

/* struct kymo_open_stack and struct kymo_zone_row, which inline code writes */
#include <kymo/hot.h>

#define KYMO_FORMAT_VERSION 1u
#define KYMO_FORMAT_OLDEST 1u /* the oldest version that this build reads */

#define KYMO_MAGIC_RUN "KYMORUN"
#define KYMO_MAGIC_CONTROL "KYMOCTL"
#define KYMO_MAGIC_NAMES "KYMONAM"
#define KYMO_MAGIC_TEXT "KYMOTXT"
#define KYMO_MAGIC_THREADS "KYMOTHR"
#define KYMO_MAGIC_STREAM "KYMOSTR"
#define KYMO_MAGIC_TOTALS "KYMOTOT"
#define KYMO_MAGIC_SEGMENT "KYMOSEG"

/* Begins every file. */
struct kymo_file_head {
	char magic[8];
	uint32_t version;
	/* size of the struct that begins with this; newer versions append fields */
	uint32_t head_bytes;
};

/* ---- clock ------------------------------------------------------------------------------- */

enum kymo_clock_kind { KYMO_CLOCK_TSC = 1, KYMO_CLOCK_MONOTONIC = 2, KYMO_CLOCK_CNTVCT = 3 };

/* Ticks and both kernel clocks, read together; error_ns is half the duration of the reading. */
struct kymo_clock_pair {
	uint64_t ticks;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
	uint64_t error_ns; /* 0 with ticks 0: not set */
};

/* ---- run --------------------------------------------------------------------------------- */

/* The name (comm) of a process that kymo starts from inside a recorded process; it is not a child
   of the program. */
#define KYMO_TRIAL_NAME "kymo-trial"
#define KYMO_PATH_BYTES 1024
#define KYMO_ARGV_BYTES 2048

/* The two directories of a supervised run. The one on disk has copies of the files that a reader
   needs, for when the live one is gone: they do not count beside it. */
#define KYMO_HALF_LIVE 1u
#define KYMO_HALF_DISK 2u

struct kymo_run_file {
	struct kymo_file_head file;
	uint32_t clock_kind;
	uint32_t supervised; /* 1: made by `kymo run` or `kymo attach`; 0: by the program itself */
	struct kymo_clock_pair epoch; /* origin of every *_ns of the recording */
	int32_t supervisor_pid;
	int32_t target_pid; /* 0 until the target has started */
	uint64_t supervisor_starttime; /* field 22 of /proc/PID/stat */
	uint64_t target_starttime;
	/* state, written by the collector */
	/* 1: target_wstatus and ended_realtime_ns are set; 2: only ended_realtime_ns, because the
	   target was not our child; 3: like 2, and the target continued unwatched */
	uint32_t ended;
	int32_t target_wstatus; /* as from waitpid */
	uint64_t ended_realtime_ns;
	uint64_t budget_memory_bytes;
	uint64_t budget_disk_bytes;
	char kymo_version[32];
	char host[64];
	char boot_id[40];
	/* the other directory of a supervised run: the live one (tmpfs) names the one on disk, and
	   the reverse; "": none */
	char peer[KYMO_PATH_BYTES];
	char program[256]; /* short name, for lists */
	/* words, each NUL-terminated, the last by two NULs; truncated if too long */
	char argv[KYMO_ARGV_BYTES];
	char cwd[KYMO_PATH_BYTES];
	uint32_t keep; /* enum kymo_keep */
	/* children that did not record; written by the collector */
	uint32_t not_recorded;
	char name[128]; /* given by the user; "": none */
	/* at ended_realtime_ns: by it and the epoch every look finds the same times */
	struct kymo_clock_pair end;
	char job[96]; /* id of the job that the run is a part of; "": none */
	uint32_t half; /* of a supervised run: KYMO_HALF_*; 0: written by an older version */
	uint32_t reserved;
};

/* ---- control page ------------------------------------------------------------------------ */

enum kymo_keep { KYMO_KEEP_FLIGHT = 0, KYMO_KEEP_ALL = 1 };
/* COMMAND: a kymo command that changed a setting and wrote the kymo.config row. */
enum kymo_role { KYMO_ROLE_TARGET = 0, KYMO_ROLE_COLLECTOR = 1, KYMO_ROLE_COMMAND = 2 };

/* Why a row was dropped. One list for the enum, the columns of kymo.streams and the docs. */
#define KYMO_DROP_CAUSES(X) \
	X(FULL, full, "no room: the file system, the budget or a file limit") \
	X(REENTRANT, reentrant, "attempted by a signal handler that interrupted recording") \
	X(CLOSED, closed, "after the thread had returned its streams") \
	X(FAILED, failed, "no stream could be created: directory gone, out of memory, too many") \
	X(WIDE, wide, "a row that does not fit its table")

enum kymo_drop {
#define X(upper, lower, text) KYMO_DROP_##upper,
	KYMO_DROP_CAUSES(X)
#undef X
		KYMO_DROP_CAUSE_COUNT
};

#define KYMO_CLOCK_PAIRS 32
#define KYMO_TABLES_MAX 80 /* tables of one process, kymo's and the user's */
#define KYMO_CONTROL_BYTES 24576

struct kymo_control {
	struct kymo_file_head file;
	/* The only word that the hot path reads: KYMO_ON_* of <kymo/hot.h>. Written by the process
	   and by `kymo config`. */
	uint32_t on;
	uint32_t step; /* the current step */
	uint32_t role;
	uint32_t clock_kind;
	int32_t pid; /* in its own pid namespace */
	int32_t ppid;
	uint64_t starttime; /* field 22 of /proc/PID/stat: detects a reused pid */
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
	int32_t rank; /* -1: none */
	int32_t ranks; /* -1: none */
	uint32_t keep;
	uint32_t ring_rows;
	/* Set once: 1 by the library's destructor, 2 by the collector when the process ended. */
	uint32_t ended;
	int32_t wstatus; /* with ended == 2 and wstatus_known */
	uint32_t wstatus_known;
	/* number of clock pairs ever; pair 0 is the first, later ones are a ring over 1..31 */
	uint32_t pair_count;
	uint64_t ended_ticks;
	/* bytes of segments that the collector moved out of the live directory */
	uint64_t moved_bytes;
	/* bytes that this process allocated there; subtract moved_bytes for the current use */
	uint64_t held_bytes;
	uint64_t names_full; /* names that got id 0 */
	uint64_t threads_full;
	uint64_t totals_full; /* rows without a totals slot */
	/* cost of one zone with its totals, measured at start-up; 0: not measured */
	uint64_t own_cost_ticks;
	struct kymo_clock_pair pairs[KYMO_CLOCK_PAIRS];
	/* Rows dropped before a stream existed to count them, by table. Index 0 is unused. */
	struct {
		char table[56];
		uint64_t dropped[KYMO_DROP_CAUSE_COUNT];
	} lost[KYMO_TABLES_MAX];
	char program[256];
	char argv[KYMO_ARGV_BYTES];
	char exe[KYMO_PATH_BYTES];
	/* Settings: written by `kymo config` and by the process. */
	uint64_t sample_period_ns;
	uint64_t system_period_ns;
	uint64_t config_changes; /* incremented by each change */
	uint32_t torch_every; /* record modules in every n-th step; 0 and 1: in all */
	uint32_t locals; /* 1: samples and backtraces may read variables */
	char torch_modules[128]; /* an fnmatch() pattern; "": all */
	char watch[256]; /* variables to record: loss@train_step,lr@train_step */
	/* By enum kymo_source: the cost of one zone as measured by its adapter; 0: not measured.
	   KYMO_SOURCE_C is in own_cost_ticks. */
	uint64_t source_cost_ticks[8];
	/* Size of the prepared segment files (KYMO_SPARE_NAME), written by the collector; 0: there
	   are none. */
	uint64_t spare_bytes;
	/* A bit per row of settings_keys that was changed since the process began; child processes
	   inherit these settings. */
	uint64_t config_changed;
	/* Of the environment, as rank and ranks; 0: unknown. attempt counts restarts of a job. */
	uint32_t local_rank_plus_1;
	uint32_t attempt_plus_1;
	uint32_t rank_source; /* enum kymo_rank_source */
	uint32_t torch_ops; /* record operators in every n-th step; 0: none, 1: all */
	/* Millionths of the time that recording of Python calls may take; 0: no limit. With a
	   limit, what it took so far, and how many calls: written by the process. */
	uint32_t python_limit;
	uint32_t reserved32;
	uint64_t python_cost_ns;
	uint64_t python_calls;
	uint64_t reserved[48];
	/* For `kymo config memory=…`, written by the process: how it learns of the setting
	   (KYMO_HEARD_*), and which KYMO_ON_ALLOC* bits it has applied. */
	uint32_t memory_heard;
	uint32_t memory_followed;
};

/* Where rank comes from. A launcher that starts one agent on each host (torchrun under srun) gives
   its agents ranks of their own, which are not those of its workers: TORCH comes first. */
enum kymo_rank_source { KYMO_RANK_NONE, KYMO_RANK_TORCH, KYMO_RANK_LAUNCHER };

/* In memory_heard. */
#define KYMO_HEARD_PRELOADED 1u /* at its next allocation */
#define KYMO_HEARD_POLLED 2u /* at its next kymo_poll() */
#define KYMO_HEARD_REFUSED 4u /* the attempt failed */

/* ---- names ------------------------------------------------------------------------------- */

#define KYMO_NAMES_MAX 262144u /* ids 1 .. KYMO_NAMES_MAX-1; id 0: the name was not stored */
#define KYMO_NAME_BYTES_MAX 4096u /* longer names are truncated at a UTF-8 boundary */
#define KYMO_TEXT_BYTES_MAX (64u << 20)

struct kymo_names_head {
	struct kymo_file_head file;
	uint64_t count; /* slots taken, including 0; a slot is valid once ready */
	uint64_t reserved[5];
}; /* 64 bytes */

struct kymo_name_entry {
	uint32_t ready; /* 1, stored last with release */
	uint32_t source; /* enum kymo_source of <kymo/hot.h> */
	uint64_t text_offset; /* from the start of `text`; the name, then the file name, no NUL */
	uint32_t name_bytes;
	uint32_t file_bytes;
	uint32_t line;
	uint32_t instance; /* of a timer or collector; 0: none */
}; /* 32 bytes */

struct kymo_text_head {
	struct kymo_file_head file;
	uint64_t used; /* bytes from the start of the file, including this header */
	uint64_t reserved[5];
}; /* 64 bytes */

/* ---- threads ----------------------------------------------------------------------------- */

#define KYMO_THREADS_MAX 1048576u /* index 0: unknown */
#define KYMO_THREAD_NAME_BYTES 40
/* Ends the name of a lane of ranges: an entry with the tid of the thread that began them. */
#define KYMO_RANGES_SUFFIX " (ranges)"

struct kymo_threads_head {
	struct kymo_file_head file;
	uint64_t count; /* slots taken, including 0 */
	uint64_t reserved[5];
}; /* 64 bytes */

struct kymo_thread_entry {
	uint32_t ready;
	int32_t tid;
	uint64_t started_ticks; /* time of its first row */
	uint64_t ended_ticks; /* 0: not ended, or ended with the process */
	char name[KYMO_THREAD_NAME_BYTES]; /* NUL-padded */
}; /* 64 bytes */

/* ---- streams ----------------------------------------------------------------------------- */

#define KYMO_COLUMNS_MAX 32
#define KYMO_ROW_BYTES_MAX 1024
#define KYMO_BATCH_ROWS 256u /* rows between two slow paths */
#define KYMO_RING_SEGMENT_ROWS 1024u /* the floor moves by this */
#define KYMO_SEGMENT_ROWS_MIN 8192u /* keep=all: first segment; doubles up to the next line */
#define KYMO_SEGMENT_BYTES_FIRST 65536u /* the first one of other tables than trace.zones */
#define KYMO_SEGMENT_ROWS_LARGEST 65536u
/* An allocated, zeroed segment file; the process that renames it owns it. */
#define KYMO_SPARE_NAME ".spare%u"
#define KYMO_SPARES_MOST 4u

struct kymo_column_desc {
	char name[32];
	uint32_t type; /* enum kymo_type of <kymo/kymo.h> */
	uint32_t offset; /* in the row */
	uint32_t bytes; /* width in the row: a TEXT column's capacity */
	char unit[20];
}; /* 64 bytes */

struct kymo_stream_head {
	struct kymo_file_head file;
	char table[64]; /* "trace.zones" */
	uint32_t id; /* the <id> of the file names */
	uint32_t row_bytes; /* a multiple of 8 */
	uint32_t column_count;
	uint32_t keep; /* enum kymo_keep: a ring, or a chain of segments */
	uint64_t cap_rows; /* of the ring; 0 for a chain */
	uint32_t has_totals;
	uint32_t has_open_stack;
	uint64_t reserved[8];
	struct kymo_column_desc columns[KYMO_COLUMNS_MAX];
}; /* padded to KYMO_LIVE_OFFSET */

/* Zones nested deeper than this have no self time: their time counts as self time of the zone at
   this depth. */
#define KYMO_CHILD_DEPTHS 214u
#define KYMO_LIVE_OFFSET 4096
#define KYMO_OPEN_OFFSET 8192
#define KYMO_HEAD_FILE_BYTES 12288

/*
 * The part of a stream that changes. The ring protocol (DESIGN: W1-W3, R1-R4, K):
 *   writer  at a segment start, if h >= cap: store_relaxed(floor, h + SEG - cap); fence_release;
 *           fills slot h % cap; store_release(head, h + 1)
 *   reader  h = load_acquire(head); lo = load_acquire(floor); copies; fence_acquire; lo2 =
 *           load_relaxed(floor); only [max(lo, lo2), h) counts
 */
struct kymo_stream_live {
	uint64_t head __attribute__((aligned(64))); /* rows published so far */
	uint64_t floor __attribute__((aligned(64))); /* ring: rows below it may be overwritten */
	/* chain: segments [segment_first, segment_next) are in the live directory; those below
	   segment_next - 1 are sealed. The process (evicting within its budget) or the collector
	   (moving to disk) raises segment_first by compare-and-swap and then unlinks the file. */
	uint64_t segment_first __attribute__((aligned(64)));
	uint64_t segment_next;
	uint64_t dropped[KYMO_DROP_CAUSE_COUNT] __attribute__((aligned(64)));
	uint32_t thread; /* index of the owning thread; 0: in the pool */
	uint32_t reserved32;
	/* totals: rows [0, fold_state >> 1) are in the slots; later rows may be (base/fold.h). The
	   low bit selects the child_at of that moment; the other one is being written. */
	uint64_t fold_state __attribute__((aligned(64)));
	uint64_t histogram_upto; /* rows below it are in their histograms; this row may be */
	/* time of ended zones by depth, not yet added to a parent */
	uint64_t child_at[2][KYMO_CHILD_DEPTHS + 2];
	uint64_t untotalled; /* folded rows without a slot */
};

_Static_assert(sizeof(struct kymo_stream_live) <= 4096, "it must fit a page");

/* Follows at KYMO_OPEN_OFFSET: struct kymo_open_stack of <kymo/hot.h>. */
_Static_assert(sizeof(struct kymo_open_stack) <= 4096, "it must fit a page");

struct kymo_segment_head {
	struct kymo_file_head file;
	uint32_t stream_id;
	uint32_t row_bytes;
	uint64_t sequence;
	uint64_t first_row; /* ring: 0 */
	uint64_t rows; /* capacity */
	uint64_t reserved[2];
}; /* 64 bytes; rows follow */

/* ---- totals ------------------------------------------------------------------------------ */

/* Log-linear histogram of durations in ticks (hist.h): 8 buckets to a power of two, 0 .. 2^45 and
   above. */
#define KYMO_HIST_BUCKETS 344u
#define KYMO_TOTALS_WITH_HIST 256u /* the first slots have a histogram */
#define KYMO_TOTALS_MAX 16384u

struct kymo_totals_head {
	struct kymo_file_head file;
	uint64_t count; /* slots in use: [0, count) */
	uint64_t reserved[5];
}; /* 64 bytes */

/* Two copies, so that one is complete if the process dies in mid-fold: half[generation & 1]. */
struct kymo_totals_half {
	uint64_t upto; /* rows below it are included; 0 with count 0: none yet */
	uint64_t count;
	uint64_t sum_ticks;
	uint64_t child_ticks;
	uint64_t square_low, square_high; /* sum of squares, 128 bits */
	uint64_t min_ticks, max_ticks; /* count 0: not set */
};

struct kymo_totals_slot {
	uint32_t name; /* id */
	uint32_t reserved;
	uint64_t generation; /* incremented after the other half is filled: commits it */
	uint64_t reserved64[6];
	struct kymo_totals_half half[2];
}; /* 192 bytes; the histogram follows, in slots that have one */

#define KYMO_SLOT_BYTES 192u
#define KYMO_HIST_BYTES (KYMO_HIST_BUCKETS * 8u)
#define KYMO_SLOT_WITH_HIST_BYTES (KYMO_SLOT_BYTES + KYMO_HIST_BYTES)

static inline uint64_t kymo_totals_slot_offset(uint32_t slot)
{
	if (slot < KYMO_TOTALS_WITH_HIST)
		return 64u + (uint64_t)slot * KYMO_SLOT_WITH_HIST_BYTES;
	return 64u + (uint64_t)KYMO_TOTALS_WITH_HIST * KYMO_SLOT_WITH_HIST_BYTES +
	       (uint64_t)(slot - KYMO_TOTALS_WITH_HIST) * KYMO_SLOT_BYTES;
}

#endif
