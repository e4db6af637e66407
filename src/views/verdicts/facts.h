/*
 * The facts about a recording that summary, report and verdicts print, gathered once: by SQL, or,
 * without DuckDB, as far as the store has them.
 */
#ifndef KYMO_VIEWS_VERDICTS_FACTS_H
#define KYMO_VIEWS_VERDICTS_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "tables/tables.h"

#define FACTS_REGIONS 15
#define FACTS_FUNCTIONS 10
#define FACTS_SPARK 47
#define FACTS_SPARK_LEAST 8 /* steps; too few for a sparkline */
#define FACTS_TABLES 64

/* Part of the file names of Python's import machinery. */
#define FACTS_IMPORT_FILE "importlib._bootstrap"

/* The first part of the names of Python's garbage collections (python/gc). They are recorded by
   default and listed apart from the program's regions. */
#define FACTS_GC "gc (generation "

#define FACTS_NO_QUANTILES \
	"p50 and p99 are - where they are not recorded: a thread keeps the distribution of its " \
	"first 256 regions. Counts and times are exact for all regions."

struct facts_region {
	char *name;
	char source[16];
	uint64_t count;
	double self_ns, total_ns;
	double p50_ns, p99_ns; /* negative: not known */
	double own_cost_ns; /* of recording all of them; 0 also if not known */
	bool import; /* part of Python's import machinery */
	/* Without SQL only: "step (/home/a/train.py:31)", where it was marked; "": not known. */
	char place[400];
};

/* A function of the program's own code, from stack samples. */
struct facts_function {
	char name[160]; /* "normalise (prep.py:5)" */
	char source[16]; /* the sampler: "python", "native" */
	uint64_t samples;
	double time; /* what the samples stand for, in ns; their number if it was not recorded */
	double running; /* part of it on a CPU */
	double total; /* with all that the function calls, in ns; negative: not recorded */
};

struct facts_steps {
	uint64_t count; /* kept */
	uint64_t ever; /* with those that were overwritten or dropped */
	char name[64];
	double median_ns, p99_ns, least_ns, most_ns, total_ns;
	double first_ns, last_ns; /* begin of the first, end of the last */
	double phase_ns[KYMO_PHASE_COUNT];
	double batch; /* samples or tokens a step, by the counters of such names; 0: not recorded */
	char batch_unit[16];
	double spark_ns[FACTS_SPARK]; /* longest step of each part of the run; -1: no such part */
};

struct facts_memory {
	double peak_bytes, peak_at_ns; /* peak 0: not recorded */
	double early_bytes, early_at_ns; /* after the first tenth: start-up is over */
	double last_bytes, last_at_ns; /* 0: not known, as of a program that was never sampled */
	double cpu_pct; /* mean of all processes together, of one core; negative: not known */
	uint64_t samples;
	uint64_t processes; /* that were sampled; 0: not known */
};

struct facts_rows {
	char table[64];
	uint64_t emitted, kept, overwritten, dropped;
};

struct facts {
	char program[256];
	bool live;
	bool saved; /* a snapshot or a capture in a file, packed or not */
	char how[48]; /* "exit 0", "killed by SIGKILL", "live", "ended", … ; see describe_end() */
	char signal[24]; /* that killed it, as SIGKILL; "": none, or not observed */
	double exit_code; /* negative: not known, or a signal */
	int32_t pid;
	int32_t rank, ranks;
	size_t process_count; /* that recorded, without the collector */
	double duration_ns;
	char clock[24]; /* "TSC"; "": not known */
	double clock_error_ns; /* negative: not known */
	bool imported; /* a trace of another tool */
	struct facts_region regions[FACTS_REGIONS];
	size_t region_count; /* filled */
	uint64_t region_all; /* in the recording */
	struct facts_function functions[FACTS_FUNCTIONS];
	size_t function_count;
	uint64_t function_samples; /* in all such functions */
	double function_time; /* of these samples */
	uint64_t import_samples; /* without SQL only: those in imports, which are not among them */
	uint64_t open_zones; /* without SQL only: zones that were open at the end */
	uint64_t gc_count; /* Python's garbage collections; they are not among the regions */
	double gc_ns;
	struct facts_steps steps;
	struct facts_memory memory;
	struct facts_rows tables[FACTS_TABLES];
	size_t table_count;
	struct facts_rows total;
	double overhead_pct; /* negative: not known */
	double collector_pct, sampler_pct; /* of one core; below 0: not known */
};

int facts_gather(struct tables *tables, struct facts *out, struct kymo_error *err);
/* Regions, rows, memory and the run itself; no step times. */
int facts_from_store(const struct recording *recording, struct facts *out, struct kymo_error *err);
/* facts_samples.c: the functions; part of facts_from_store(). */
void facts_store_functions(const struct recording *recording, struct facts *out);
void facts_fini(struct facts *facts);
/* facts_quantiles.c: fills in unknown p50 and p99 from the rows of zones, if none is lost and they
   are not too many. 0, or a negative errno and *err. */
int facts_quantiles(struct tables *tables, struct facts *out, struct kymo_error *err);

/* Rows of one table; zeros if there are none. */
struct facts_rows facts_rows_of(const struct facts *facts, const char *table);

/* The end of a path that tells functions of the same name apart, as sql/parts/file_place.sql. */
const char *facts_place(const char *file);

#endif
