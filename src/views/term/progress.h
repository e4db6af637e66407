/*
 * Progress of a long operation: on a terminal only, after one second, updated ten times a second on
 * one line of stderr, which is cleared at the end.
 *
 *	struct progress progress;
 *	progress_begin(&progress, "reading", "zones");
 *	progress_at(&progress, done, all);	reading 4.1 of 10.0 M zones  41 %
 *	progress_end(&progress);
 */
#ifndef KYMO_VIEWS_TERM_PROGRESS_H
#define KYMO_VIEWS_TERM_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	const char *doing, *what; /* "reading", "zones" */
	bool terminal, shown;
	uint64_t began_ns, said_ns;
};

void progress_begin(struct progress *progress, const char *doing, const char *what);
/* all: 0 if unknown. Cheap enough to call for every row of a batch. */
void progress_at(struct progress *progress, uint64_t done, uint64_t all);
/* Clears the line, if there is one. */
void progress_end(struct progress *progress);

/* "reading 4.1 of 10.0 M zones  41 %" */
void progress_text(const struct progress *progress, uint64_t done, uint64_t all, char *out,
		   size_t out_bytes);

#endif
