/*
 * `kymo export`: a recording in the formats of other tools; EXPORT_FORMATS lists them. All of them
 * stream: memory grows with names and distinct stacks, not with zones.
 */
#ifndef KYMO_VIEWS_EXPORT_EXPORT_H
#define KYMO_VIEWS_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "tables/tables.h"
#include "views/stacks/name_table.h"
#include "views/term/progress.h"
#include "views/timeline/zone_walk.h"

struct export_options {
	const char *file; /* a file, or a directory for several tables; "-": standard output */
	const char *table; /* parquet, arrow, csv: only this one; NULL: all with rows */
	bool force; /* overwrite an existing file */
	/* formats with .stacks: python.samples instead of zones; implied if there are no zones */
	bool samples;
	bool native; /* with samples: native.samples, with Python frames where they are known */
};

/* The state of an export. */
struct export
{
	struct tables *tables;
	const struct export_options *options;
	FILE *out;
	struct buf buf; /* written when it is large enough: export_flush() */
	bool unmarked; /* the program marked nothing, and its stacks were sampled */
	struct name_table frames;
	struct progress progress;
	struct kymo_error *err;
	void *own; /* the format's */
};

struct export_format {
	const char *name;
	const char *extension; /* of the file, with its dot */
	const char *about; /* one line */
	bool binary; /* refused on a terminal */
	bool tables; /* one file per table; without --table a directory of them */
	bool stacks; /* takes --samples */
	const char *media_type; /* of GET /api/export; NULL: not served */
	const char *download; /* its file name there */
	int (*write)(struct export *export); /* NULL: export_tables() does */
};

/* Every format, in the order of the help; the first is the default. A format is one word here and
   one file that defines `const struct export_format export_WORD`. */
/* clang-format off */
#define EXPORT_FORMATS(X, BETWEEN) \
	X(perfetto) BETWEEN X(chrome) BETWEEN X(speedscope) BETWEEN X(pprof) BETWEEN X(folded) BETWEEN \
	X(svg) BETWEEN X(otlp) BETWEEN X(otlp_metrics) BETWEEN X(parquet) BETWEEN X(arrow) BETWEEN \
	X(csv)
#define EXPORT_DECLARE(word) extern const struct export_format export_##word
#define EXPORT_WORD(word) #word
EXPORT_FORMATS(EXPORT_DECLARE, ;);
#define EXPORT_WORDS EXPORT_FORMATS(EXPORT_WORD, "|") /* "perfetto|chrome|…" */
/* clang-format on */

extern const struct export_format *const export_formats[]; /* ended by NULL */
/* A tree of callers, for `kymo flame` on a terminal; not in the list. */
extern const struct export_format export_flame_text;
const struct export_format *export_find(const char *name);
/* By the extension of a file's name; NULL: none matches. */
const struct export_format *export_find_extension(const char *file);

/* Writes the export. A file appears complete or not at all. */
int export_write(struct tables *tables, const struct export_format *format,
		 const struct export_options *options, struct kymo_error *err);

/* For the formats: */
int export_flush(struct export *export, bool all);
/* The kind of the samples that are written: "Python" or "native". */
const char *export_samples_word(struct export *export);
/* Visits all zones, with progress. samples: those of sampled stacks too, if there are no others. */
int export_walk(struct export *export, const struct zone_walk_visitor *visitor, bool samples);
/* The program's short name, for headings; cut if it does not fit. */
void export_program(struct export *export, char *out, size_t out_bytes);

/* One table, or a directory of all. */
int export_tables(struct export *export, const struct export_format *format);

#endif
