/* The parts of a model that are read by SQL, in a child: packed files, operations of devices. */
#ifndef KYMO_SERVE_FEED_SQL_H
#define KYMO_SERVE_FEED_SQL_H

#include "serve/feed.h"

int feed_sql_all(struct feed *feed, const char *path, struct kymo_error *err);
/* Reads the lanes of queues again. Errors are ignored: the lanes stay empty. */
void feed_sql_devices(struct feed *feed, const char *path, bool live);
/* Adds what a child has written, as zone_record.h describes it: untrusted. */
int feed_sql_read(struct feed *feed, int fd, const char *path, struct kymo_error *err);

#endif
