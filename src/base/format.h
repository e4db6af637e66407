/*
 * Every byte that kymo puts into a file, except the snapshot's envelope
 * (base/files/snapshot_format.h). docs/format.md says the same in prose. Little endian; all offsets
 * are from the start of the file.
 *
 *   RUN/                        a run: one program and its children
 *     run                       struct kymo_run_file
 *     p<pid>-<starttime>/       a process of the run
 *       control                 struct kymo_control: who it is, what is on, the clock, losses
 *       names                   struct kymo_names_head, then struct kymo_name_entry[]
 *       text                    struct kymo_text_head, then bytes that name entries point into
 *       threads                 struct kymo_threads_head, then struct kymo_thread_entry[]
 *       s<id>.head              struct kymo_stream_head (one page), struct kymo_stream_live, struct kymo_open_stack
 *       s<id>.totals            struct kymo_totals_head, then slots (only streams of zones)
 *       s<id>.<seq>             struct kymo_segment_head, then rows. Flight: one file (seq 0), a ring of
 *                               cap rows. Chain (keep=all): file after file, each full one sealed
 *       .spare<n>               a file for the next one, made by the supervisor; nothing in it counts
 *
 * Who writes: the recorded process alone, but for the fields that say otherwise. Readers trust
 * nothing here: they copy, then check (store/).
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
	/* of the struct that begins with this; newer minor fields grow at its end */
	uint32_t head_bytes;
};

/* ---- clock ------------------------------------------------------------------------------- */

enum kymo_clock_kind { KYMO_CLOCK_TSC = 1, KYMO_CLOCK_MONOTONIC = 2, KYMO_CLOCK_CNTVCT = 3 };

/* Ticks and both kernel clocks, read around each other; error_ns is half of the reading's width. */
struct kymo_clock_pair {
	uint64_t ticks;
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
	uint64_t error_ns; /* 0 and ticks 0: not filled */
};

/* ---- run --------------------------------------------------------------------------------- */

/* The name (comm) of a process that a recorded one starts for kymo's own purposes: no child of the
   program's. */
#define KYMO_TRIAL_NAME "kymo-trial"
#define KYMO_PATH_BYTES 1024
#define KYMO_ARGV_BYTES 2048

struct kymo_run_file {
	struct kymo_file_head file;
	uint32_t clock_kind;
	uint32_t supervised; /* 1: made by `kymo run` or `kymo attach`; 0: by the program itself */
	struct kymo_clock_pair epoch; /* every *_ns of the recording counts from here */
	int32_t supervisor_pid;
	int32_t target_pid; /* 0 until the target has started */
	uint64_t supervisor_starttime; /* field 22 of /proc/PID/stat */
	uint64_t target_starttime;
	/* state: written by the supervisor */
	/* 1: target_wstatus and ended_realtime_ns hold; 2: ended_realtime_ns alone, since somebody
	   else's child was watched; 3: as 2, and it ran on, unwatched */
	uint32_t ended;
	int32_t target_wstatus; /* as from waitpid */
	uint64_t ended_realtime_ns;
	uint64_t budget_memory_bytes;
	uint64_t budget_disk_bytes;
	char kymo_version[32];
	char host[64];
	char boot_id[40];
	/* the other half of a supervised run: in the live directory (tmpfs) the directory on disk,
	   and there the live one; "" where there is none */
	char peer[KYMO_PATH_BYTES];
	char program[256]; /* short name, for lists */
	/* words, each ended by NUL, the last one by two; cut if too long */
	char argv[KYMO_ARGV_BYTES];
	char cwd[KYMO_PATH_BYTES];
	uint32_t keep; /* enum kymo_keep */
	/* children that were seen and did not record: written by the supervisor */
	uint32_t not_recorded;
	char name[128]; /* that the user gave the run; "": none */
	/* at ended_realtime_ns: by it and the epoch every look finds the same times */
	struct kymo_clock_pair end;
	uint64_t reserved[13];
};

/* ---- control page ------------------------------------------------------------------------ */

enum kymo_keep { KYMO_KEEP_FLIGHT = 0, KYMO_KEEP_ALL = 1 };
/* A command is kymo itself for a moment: one that changed a setting, and wrote the row of it. */
enum kymo_role { KYMO_ROLE_TARGET = 0, KYMO_ROLE_COLLECTOR = 1, KYMO_ROLE_COMMAND = 2 };

/* Why a row was not kept. One list: the enum, the columns of kymo.streams and the docs follow
   it. */
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
#define KYMO_TABLES_MAX 80 /* tables of one process, ours and the user's */
#define KYMO_CONTROL_BYTES 24576

struct kymo_control {
	struct kymo_file_head file;
	/* The one word that the hot path reads: KYMO_ON_* of <kymo/hot.h>. Written by the process
	   and, through `kymo config`, from outside. */
	uint32_t on;
	uint32_t step; /* the current step: written by the process */
	uint32_t role;
	uint32_t clock_kind;
	int32_t pid; /* in its own pid namespace */
	int32_t ppid;
	uint64_t starttime; /* field 22 of /proc/PID/stat: tells a pid used again */
	uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
	int32_t rank; /* -1: none */
	int32_t ranks; /* -1: none */
	uint32_t keep;
	uint32_t ring_rows;
	/* Set once, by the library's destructor (1) or by the supervisor (2: it saw the process
	   end). */
	uint32_t ended;
	int32_t wstatus; /* with ended == 2 and wstatus_known */
	uint32_t wstatus_known;
	/* clock pairs: 0 is the first ever, the others a ring over 1..31; grows for ever */
	uint32_t pair_count;
	uint64_t ended_ticks;
	/* segments that the supervisor took out of the live directory: it adds */
	uint64_t moved_bytes;
	/* what this process has allocated there: it adds, readers subtract moved_bytes */
	uint64_t held_bytes;
	uint64_t names_full; /* names that got id 0 */
	uint64_t threads_full;
	uint64_t totals_full; /* rows that no totals slot could be had for */
	/* what one zone costs here, its totals included, measured at start-up; 0: not measured */
	uint64_t own_cost_ticks;
	struct kymo_clock_pair pairs[KYMO_CLOCK_PAIRS];
	/* Rows that were lost before there was a stream to count them, by table. Index 0 is
	   unused. */
	struct {
		char table[56];
		uint64_t dropped[KYMO_DROP_CAUSE_COUNT];
	} lost[KYMO_TABLES_MAX];
	char program[256];
	char argv[KYMO_ARGV_BYTES];
	char exe[KYMO_PATH_BYTES];
	/* kymo.config: written by `kymo config` and by the process; seconds and words of the
	   contract. */
	uint64_t sample_period_ns;
	uint64_t system_period_ns;
	uint64_t config_changes; /* grows with each change: who holds a copy looks again */
	uint32_t torch_every; /* modules are recorded in every n-th step; 0 and 1: in all */
	uint32_t locals; /* 1: samples and backtraces may read variables */
	char torch_modules[128]; /* a pattern as of fnmatch(); "": all */
	char watch[256]; /* variables to record, as loss@train_step,lr@train_step */
	/* By enum kymo_source: what one of its zones costs, as its adapter measured; 0: not
	   measured. KYMO_SOURCE_C's is own_cost_ticks. */
	uint64_t source_cost_ticks[8];
	/* Segment files of so many bytes lie ready to be taken (KYMO_SPARE_NAME): the supervisor
	   writes it; 0: none do. */
	uint64_t spare_bytes;
	/* A bit for each row of settings_keys that was changed since the process began: what it
	   starts inherits those. */
	uint64_t config_changed;
	uint64_t reserved[53];
	/* For `kymo config memory=…`, written by the process: how it hears of it, and which of
	   KYMO_ON_ALLOC and KYMO_ON_ALLOC_EXACT it has done. */
	uint32_t memory_heard;
	uint32_t memory_followed;
};

/* In memory_heard. */
#define KYMO_HEARD_PRELOADED 1u /* at its next allocation */
#define KYMO_HEARD_POLLED 2u /* at its next kymo_poll(), which it makes */
#define KYMO_HEARD_REFUSED 4u /* it tried, and could not */

/* ---- names ------------------------------------------------------------------------------- */

#define KYMO_NAMES_MAX 262144u /* ids 1 .. KYMO_NAMES_MAX-1; id 0 is "no name could be had" */
#define KYMO_NAME_BYTES_MAX 4096u /* longer names and file names are cut at a UTF-8 boundary */
#define KYMO_TEXT_BYTES_MAX (64u << 20)

struct kymo_names_head {
	struct kymo_file_head file;
	uint64_t count; /* slots taken, including 0; a slot counts once it is ready */
	uint64_t reserved[5];
}; /* 64 bytes */

struct kymo_name_entry {
	uint32_t ready; /* 1, stored with release after all else */
	uint32_t source; /* enum kymo_source of <kymo/hot.h> */
	uint64_t text_offset; /* from the start of `text`; the name, then the file name, no NUL */
	uint32_t name_bytes;
	uint32_t file_bytes;
	uint32_t line;
	uint32_t instance; /* of a timer or collector; 0: none */
}; /* 32 bytes */

struct kymo_text_head {
	struct kymo_file_head file;
	uint64_t used; /* bytes from the start of the file, this head included */
	uint64_t reserved[5];
}; /* 64 bytes */

/* ---- threads ----------------------------------------------------------------------------- */

#define KYMO_THREADS_MAX 1048576u /* index 0 is "not known" */

struct kymo_threads_head {
	struct kymo_file_head file;
	uint64_t count; /* slots taken, including 0 */
	uint64_t reserved[5];
}; /* 64 bytes */

struct kymo_thread_entry {
	uint32_t ready;
	int32_t tid;
	uint64_t started_ticks; /* its first row */
	uint64_t ended_ticks; /* 0: has not ended, or died with the process */
	char name[40]; /* NUL-padded */
}; /* 64 bytes */

/* ---- streams ----------------------------------------------------------------------------- */

#define KYMO_COLUMNS_MAX 32
#define KYMO_ROW_BYTES_MAX 1024
#define KYMO_BATCH_ROWS 256u /* rows between two visits of the slow path */
#define KYMO_RING_SEGMENT_ROWS 1024u /* the floor moves in such steps */
#define KYMO_SEGMENT_ROWS_MIN 8192u /* keep=all: first segment; doubles up to the next */
#define KYMO_SEGMENT_ROWS_LARGEST 65536u
#define KYMO_SPARE_NAME \
	".spare%u" /* a segment's file that is allocated and zero; who renames it has it */
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

/* Zones below that many others have no self time: their time is the self time of the last one that
   has. */
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
	uint64_t head __attribute__((aligned(64))); /* rows published, ever */
	uint64_t floor __attribute__((aligned(64))); /* ring: rows below it may be overwritten */
	/* chain: the segments [segment_first, segment_next) are in the live directory; those below
	   segment_next - 1 are sealed. segment_first is raised by compare-and-swap, by the process
	   (evicts within its budget) or by the supervisor (moved to disk); whoever raised it
	   unlinks the file. */
	uint64_t segment_first __attribute__((aligned(64)));
	uint64_t segment_next;
	uint64_t dropped[KYMO_DROP_CAUSE_COUNT] __attribute__((aligned(64)));
	uint32_t thread; /* index of the tenant; 0: in the pool */
	uint32_t reserved32;
	/* totals: rows [0, fold_state >> 1) are in the slots for certain; later ones where a slot
	   says so (base/fold.h). The low bit says which child_at belongs to that moment; the other
	   one is being written. */
	uint64_t fold_state __attribute__((aligned(64)));
	uint64_t histogram_upto; /* rows below it are in their histograms; it itself may be */
	uint64_t child_at[2][KYMO_CHILD_DEPTHS +
			     2]; /* time of ended zones at that depth, not yet given to a parent */
	uint64_t untotalled; /* rows folded that found no slot */
};

_Static_assert(sizeof(struct kymo_stream_live) <= 4096, "it has a page");

/* Follows at KYMO_OPEN_OFFSET: struct kymo_open_stack of <kymo/hot.h>. */

struct kymo_segment_head {
	struct kymo_file_head file;
	uint32_t stream_id;
	uint32_t row_bytes;
	uint64_t sequence;
	uint64_t first_row; /* ring: 0 */
	uint64_t rows; /* that fit; a ring's cap */
	uint64_t reserved[2];
}; /* 64 bytes; rows follow */

/* ---- totals ------------------------------------------------------------------------------ */

/* Log-linear histogram of durations in ticks: 8 buckets to a power of two, 0 .. 2^45 and above. */
#define KYMO_HIST_BUCKETS 344u
#define KYMO_TOTALS_WITH_HIST 256u /* the first slots have a histogram */
#define KYMO_TOTALS_MAX 16384u

struct kymo_totals_head {
	struct kymo_file_head file;
	uint64_t count; /* slots in use: [0, count) */
	uint64_t reserved[5];
}; /* 64 bytes */

/* Doubled, so that a death in mid-fold leaves one whole: half[generation & 1] holds. */
struct kymo_totals_half {
	uint64_t upto; /* rows below it are in; 0 and count 0: none yet */
	uint64_t count;
	uint64_t sum_ticks;
	uint64_t child_ticks;
	uint64_t square_low, square_high; /* sum of squares, 128 bits */
	uint64_t min_ticks, max_ticks; /* count 0: not set */
};

struct kymo_totals_slot {
	uint32_t name; /* id */
	uint32_t reserved;
	uint64_t generation; /* stored after the other half: commits it */
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

/* A double's bits are an exponent and, next to it, the three bits that follow the leading one.
   Rounding can only move durations above 2^53, and those are in the last bucket. (BSR is microcode
   on AMD, and costs three times as much.) */
static inline uint32_t kymo_hist_bucket(uint64_t ticks)
{
	double real = (double)(int64_t)ticks;
	uint64_t bits;

	__builtin_memcpy(&bits, &real, sizeof(bits));
	bits = (bits >> 49) - (1023u + 3u) * 8u; /* 0: a duration of 8 */
	if (__builtin_expect(bits < KYMO_HIST_BUCKETS - 8u, 1))
		return (uint32_t)bits + 8u;
	return ticks < 8 ? (uint32_t)ticks : KYMO_HIST_BUCKETS - 1u;
}

/* The smallest duration of a bucket; that of the next bucket is its end. */
static inline uint64_t kymo_hist_start(uint32_t bucket)
{
	if (bucket < 8)
		return bucket;
	return (uint64_t)(8u + bucket % 8u) << (bucket / 8u - 1u);
}

#endif
