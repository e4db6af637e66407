/* A thread that stops queries at their deadline or after tables_interrupt(). DuckDB loses an
   interrupt that arrives while it starts a query, so the watchdog repeats it until the call has
   returned. */
#ifndef KYMO_TABLES_QUERY_WATCHDOG_H
#define KYMO_TABLES_QUERY_WATCHDOG_H

#include "tables/session.h"

int query_watchdog_init(struct tables *tables, struct kymo_error *err);
void query_watchdog_fini(struct tables *tables);

/* Registers a result, which can be stopped from then on. Its connection must stay open until
   query_watchdog_remove(). */
int query_watchdog_add(struct tables_result *result, struct kymo_error *err);
void query_watchdog_remove(struct tables_result *result);

/* Called before and after each call into DuckDB that may take long. Both return 0, or -ETIMEDOUT
   or -ECANCELED and a sentence if the result was stopped; then do not make the call, or do not
   use its result. */
int query_watchdog_enter(struct tables_result *result, struct kymo_error *err);
int query_watchdog_leave(struct tables_result *result, struct kymo_error *err);

/* Ends an abandoned statement by interrupting it until it has ended. DuckDB's threads otherwise
   run to the end of their part, which may take forever, and closing waits for them. */
void query_watchdog_settle(struct tables_result *result);

#endif
