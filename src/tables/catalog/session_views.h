/*
 * The views of a recording that is not packed. Creating all of them takes longer than a short
 * query, so each is created when a query first names it, after those that it is made of.
 */
#ifndef KYMO_TABLES_CATALOG_SESSION_VIEWS_H
#define KYMO_TABLES_CATALOG_SESSION_VIEWS_H

#include "tables/session.h"

/* The schemas; no view yet. */
int session_views_init(struct tables *tables, duckdb_connection connection, struct kymo_error *err);
void session_views_fini(struct tables *tables);
/* Creates the views that the SQL names, or all if it asks for the list of tables. */
int session_views_need(struct tables *tables, const char *sql, struct kymo_error *err);
/* Creates those that are missing. True if there were any: a query that failed may pass now. */
bool session_views_complete(struct tables *tables);

#endif
