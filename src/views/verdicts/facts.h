/*
 * What there is to say about a recording, gathered once; summary, report and verdicts print from
 * here. By SQL, or, without DuckDB, as much as the store alone knows.
 */
#ifndef KYMO_VIEWS_VERDICTS_FACTS_H
#define KYMO_VIEWS_VERDICTS_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "tables/tables.h"

#define FACTS_REGIONS 15
#define FACTS_SPARK 47
#define FACTS_SPARK_LEAST 8 /* steps; fewer make no picture */
#define FACTS_TABLES 64

/* The steps of the process and name that has most of them: a table to select from. */
#define FACTS_STEPS_SQL \
	"(SELECT s.* FROM trace.steps s JOIN (SELECT pid, name, count(*) AS n FROM trace.steps " \
	"GROUP BY ALL " \
	"ORDER BY n DESC, pid LIMIT 1) o ON s.pid = o.pid AND s.name IS NOT DISTINCT FROM o.name)"

/* A name as tables show it: the class of a torch module whose own name is a mere number, as in
   layers.0 (Linear). Where rows are grouped by name and source. */
#define FACTS_LABEL_SQL \
	"CASE WHEN source = 'torch' AND regexp_matches(name, '(^|\\.)[0-9]+$') AND min(file) = " \
	"max(file) THEN name || ' (' || " \
	"min(file) || ')' ELSE name END"
/* The same for a module: its class by the totals, where all of that name have one. A table of name
   and label. */
#define FACTS_MODULE_LABELS_SQL \
	"(SELECT name, " FACTS_LABEL_SQL \
	" AS label FROM trace.regions WHERE source = 'torch' GROUP BY name, source)"

/* What tells namesakes apart: the end of a file's path, with the package where the file is its
   __init__.py. */
#define FACTS_PLACE_SQL "regexp_extract(file, '[^/]*(/__init__[.]py)?$')"
/* trace.regions, in which functions of Python that are called alike in several files have their
   file behind the name. */
#define FACTS_REGIONS_SQL \
	"(SELECT * EXCLUDE (name), CASE WHEN source = 'python' AND file IS NOT NULL AND " \
	"min(file) OVER same <> max(file) OVER same " \
	"THEN name || ' (' || " FACTS_PLACE_SQL \
	" || ')' ELSE name END AS name FROM trace.regions WINDOW same AS (PARTITION BY source, " \
	"name))"

/* In the file names of what Python's import itself is made of. */
#define FACTS_IMPORT_FILE "importlib._bootstrap"

/* How names of Python's garbage collections begin (python/gc): recorded unasked, they are told
   apart from regions. */
#define FACTS_GC "gc (generation "

#define FACTS_NO_QUANTILES \
	"Where p50 and p99 are -, they are not known: a thread keeps the distribution of its " \
	"first 256 regions; counts and " \
	"times of the others are exact, too."

struct facts_region {
	char *name;
	char source[16];
	uint64_t count;
	double self_ns, total_ns;
	double p50_ns, p99_ns; /* negative: not known */
	double own_cost_ns; /* what recording all of them cost; 0 also where it is not known */
	bool import; /* machinery of Python's import */
};

struct facts_steps {
	uint64_t count; /* kept */
	uint64_t ever;
	char name[64];
	double median_ns, p99_ns, least_ns, most_ns, total_ns;
	double first_ns, last_ns; /* when they began and ended */
	double phase_ns[KYMO_PHASE_COUNT];
	double batch; /* samples or tokens a step, by the counters of such names; 0: not recorded */
	char batch_unit[16];
	double spark_ns[FACTS_SPARK]; /* longest step of each part of the run; -1: no such part */
};

struct facts_memory {
	double peak_bytes, peak_at_ns; /* peak 0: not recorded */
	double early_bytes, early_at_ns; /* after the first tenth: start-up is over */
	double last_bytes, last_at_ns;
	double cpu_pct; /* mean, of one core; negative: not known */
	uint64_t samples;
};

struct facts_rows {
	char table[64];
	uint64_t emitted, kept, overwritten, dropped;
};

struct facts {
	char program[256];
	bool live;
	bool saved; /* a part of a recording in a file: a snapshot or a capture, packed or not */
	char how[48]; /* "exit 0", "killed by SIGKILL", "live", "ended", "detached, it ran on", "gone, nobody saw how", "taken while it ran" */
	char signal[24]; /* that killed it, as SIGKILL; "": none did, or nobody saw */
	double exit_code; /* negative: not known, or a signal */
	int32_t pid;
	int32_t rank, ranks;
	size_t process_count; /* that recorded; without the collector */
	double duration_ns;
	char clock[24]; /* "TSC"; "" : not known */
	double clock_error_ns; /* negative: not known */
	struct facts_region regions[FACTS_REGIONS];
	size_t region_count; /* filled */
	uint64_t region_all; /* that there are */
	uint64_t gc_count; /* Python's garbage collections, which are not among the regions */
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
void facts_fini(struct facts *facts);

/* Rows of one table; zeros where there are none. */
struct facts_rows facts_rows_of(const struct facts *facts, const char *table);

/* As FACTS_PLACE_SQL: the end of the path. */
const char *facts_place(const char *file);

#endif
