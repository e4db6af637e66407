/* kymo_scan(table, from_ns :=, to_ns :=, step_from :=, step_to :=): the rows of all streams of a
   table. */
#ifndef KYMO_TABLES_SCAN_SCAN_H
#define KYMO_TABLES_SCAN_SCAN_H

#include "tables/session.h"

int scan_register(struct tables *tables, duckdb_connection connection, struct kymo_error *err);
/* Threads that rows refer to: those of the recording, then one "not known" thread per process. */
size_t scan_thread_count(const struct recording *recording);

#endif
