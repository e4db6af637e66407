/*
 * A thread that stops queries: at their deadline, or when tables_interrupt() asked. DuckDB forgets
 * an interrupt that comes while it begins a query, so the watchdog repeats it until the call has
 * returned.
 */
#ifndef KYMO_TABLES_QUERY_WATCHDOG_H
#define KYMO_TABLES_QUERY_WATCHDOG_H

#include "tables/session.h"

int query_watchdog_init(struct tables *tables, struct kymo_error *err);
void query_watchdog_fini(struct tables *tables);

/* From here on the result can be stopped; its connection must be open until
   query_watchdog_remove(). */
int query_watchdog_add(struct tables_result *result, struct kymo_error *err);
void query_watchdog_remove(struct tables_result *result);

/* Around each call into DuckDB that may take long. Both say whether the result was stopped: 0,
   -ETIMEDOUT or -ECANCELED and a sentence; then do not call, or do not use what came back. */
int query_watchdog_enter(struct tables_result *result, struct kymo_error *err);
int query_watchdog_leave(struct tables_result *result, struct kymo_error *err);

/* Ends what still runs of a statement that was given up, by interrupting until it has: DuckDB's
   threads go on to the end of their part, which may never come, and closing waits for them. */
void query_watchdog_settle(struct tables_result *result);

#endif
