/*
 * The text of a source file that a recording names. Its name comes from the recorded program, and
 * the file is of today: it may have changed, or belong to someone else. So only regular files with
 * the extension of a programming language are read, and no link is followed.
 */
#ifndef KYMO_VIEWS_SOURCE_SOURCE_TEXT_H
#define KYMO_VIEWS_SOURCE_SOURCE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define SOURCE_TEXT_MOST (INT64_C(2) << 20) /* bytes of a file */

struct source_text {
	struct buf text; /* as it is in the file; not checked for UTF-8 */
	bool read; /* text is the whole file, which may be empty */
	bool newer; /* changed after the recording began */
	char why[160]; /* it was not read: a sentence without the period; "" : it was read */
};

/* Whether a file of that name may hold source text, by its extension. */
bool source_text_is_source(const char *name);

/* Of Python, by its extension. */
bool source_text_is_python(const char *name);

/* name: as the recording has it; a relative one is looked for in cwd, the directory in which the
   program was started. */
void source_text_read(struct source_text *out, const char *name, const char *cwd,
		      uint64_t started_unix_ns);
void source_text_fini(struct source_text *text);

#endif
