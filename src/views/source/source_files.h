/* The source files that a recording names, with time, calls and allocations of their lines: for
   the Source tab of a report and of the viewer. */
#ifndef KYMO_VIEWS_SOURCE_SOURCE_FILES_H
#define KYMO_VIEWS_SOURCE_SOURCE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "tables/tables.h"
#include "views/timeline/rank_set.h"

/* The columns of source_lines.sql after file and line. */
enum source_value {
	SOURCE_SELF_SAMPLES,
	SOURCE_SAMPLES,
	SOURCE_SELF_NS,
	SOURCE_TOTAL_NS,
	SOURCE_LINE_COUNT,
	SOURCE_LINE_NS,
	SOURCE_LINE_SELF_NS,
	SOURCE_CALLS,
	SOURCE_CALLS_NS,
	SOURCE_CALLS_SELF_NS,
	SOURCE_ALLOC_BYTES,
	SOURCE_ALLOC_COUNT,
	SOURCE_PEAK_BYTES,
	SOURCE_VALUES
};

struct source_line {
	uint32_t line;
	double values[SOURCE_VALUES];
};

struct source_file {
	char *name; /* as the recording has it */
	bool own; /* the program's own code, not a library */
	double values[SOURCE_VALUES]; /* of the file; samples count once for each stack */
	struct source_line *lines; /* in order */
	size_t line_count, line_room;
};

struct source_files {
	struct source_file *list; /* own code first, then by time */
	size_t count, room;
	char *cwd;
	uint64_t started_unix_ns;
	bool from_elsewhere; /* a packed file that was recorded on another machine */
};

/* At most 200 files. ranks: NULL for all. */
int source_files_gather(struct tables *tables, const struct rank_set *ranks,
			struct source_files *out, struct kymo_error *err);
/* By the name that the recording has; NULL: it has no such file. */
const struct source_file *source_files_find(const struct source_files *files, const char *name);
void source_files_fini(struct source_files *files);

/* What the JSON of a file has beside its name and its totals. */
struct source_wanted {
	bool lines; /* "lines":[[line, values…],…] */
	bool text; /* "text", "newer" and "why", the reason if the text is null */
	size_t text_most; /* bytes; a longer text is left out */
	const char *without; /* why no text is read; NULL: it is read */
};

/* {"file":…,"own":…,"samples":…,…}. Returns the bytes of the text. */
size_t source_files_json(const struct source_files *files, const struct source_file *file,
			 const struct source_wanted *wanted, struct buf *out);

/* [{…},…]: all files with their lines, and the text of the first ones: of at most 20 files and 1 MB
   in all. without_text: of none; nor of a packed file from another machine, which may name any file
   of this one. out_texts: the number of texts. */
int source_files_document(struct tables *tables, bool without_text, struct buf *out,
			  size_t *out_texts, struct kymo_error *err);

#endif
