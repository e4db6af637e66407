/* Checks of this machine: which features work, and what to do about those that do not. */
#ifndef KYMO_VIEWS_STATUS_DOCTOR_H
#define KYMO_VIEWS_STATUS_DOCTOR_H

#include <stdbool.h>
#include <stdio.h>

#include "views/term/text.h"

enum doctor_state {
	DOCTOR_WORKS,
	DOCTOR_ABSENT, /* not installed; nothing else depends on it */
	DOCTOR_LIMITED, /* works in part */
	DOCTOR_BROKEN, /* an essential feature does not work */
};

struct doctor_finding {
	const char *name, *what; /* of the feature; what uses it */
	enum doctor_state state;
	char text[256]; /* the finding */
	char mend[256]; /* the remedy; "": none needed */
};

/* Runs all checks. They change nothing and take at most a second or two. Returns the number of
   findings, at most DOCTOR_MOST. */
#define DOCTOR_MOST 32
size_t doctor_look(struct doctor_finding *out);

/* For checks: the finding; the remedy; whether the loader finds a library; the first line that a
   command prints. */
void doctor_found(struct doctor_finding *finding, enum doctor_state state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_mend(struct doctor_finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
bool doctor_has_library(const char *name);
bool doctor_ask(const char *command, char *out, size_t out_bytes);

void doctor_print(const struct doctor_finding *findings, size_t count,
		  const struct text_style *style, FILE *out);
void doctor_print_json(const struct doctor_finding *findings, size_t count, FILE *out);

#endif
