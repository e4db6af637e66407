/* How a program ended, as the first sentence of its report: a failure, a signal, memory that ran
   out, or what it waited for. */
#ifndef KYMO_VIEWS_VERDICTS_VERDICT_END_H
#define KYMO_VIEWS_VERDICTS_VERDICT_END_H

#include "views/verdicts/verdict.h"

/* False: it ended as it should, or still runs. tables may be NULL. */
bool verdict_end_say(struct tables *tables, const struct facts *facts, bool utf8,
		     struct verdict *out);
/* The text that a query of one row returns, escaped; "" if there is none. */
void verdict_end_say_where(struct tables *tables, const char *sql, char *out, size_t room);

#endif
