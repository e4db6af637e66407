/* What of an index is asked for in SQL: packed files as a whole, and what devices did. */
#ifndef KYMO_SERVE_FEED_SQL_H
#define KYMO_SERVE_FEED_SQL_H

#include "serve/feed.h"

int feed_sql_all(struct feed *feed, const char *path, struct kymo_error *err);
/* Lanes of queues, anew; what cannot be had is left out. */
void feed_sql_devices(struct feed *feed, const char *path);

#endif
