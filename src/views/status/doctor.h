/* What works on this machine, and how to mend what does not. */
#ifndef KYMO_VIEWS_STATUS_DOCTOR_H
#define KYMO_VIEWS_STATUS_DOCTOR_H

#include <stdbool.h>
#include <stdio.h>

#include "views/term/text.h"

enum doctor_state {
	DOCTOR_WORKS,
	DOCTOR_ABSENT, /* it is not there, and nothing else suffers */
	DOCTOR_LIMITED, /* it works in part */
	DOCTOR_BROKEN, /* what most people need does not work */
};

struct doctor_finding {
	const char *name, *what; /* of the thing; what it is for */
	enum doctor_state state;
	char text[256]; /* what was found */
	char mend[256]; /* what helps; "": nothing to do */
};

/* Looks at everything; nothing is changed, and nothing takes longer than a second or two. Gives the
   number of findings, at most DOCTOR_MOST. */
#define DOCTOR_MOST 24
size_t doctor_look(struct doctor_finding *out);

void doctor_print(const struct doctor_finding *findings, size_t count,
		  const struct text_style *style, FILE *out);
void doctor_print_json(const struct doctor_finding *findings, size_t count, FILE *out);

#endif
