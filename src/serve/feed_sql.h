/* The parts of a model that are read by SQL, in a child: packed files, operations of devices. */
#ifndef KYMO_SERVE_FEED_SQL_H
#define KYMO_SERVE_FEED_SQL_H

#include "serve/feed.h"

int feed_sql_all(struct feed *feed, const char *path, struct kymo_error *err);
/* Asks for the zones that no thread made; returns a descriptor, or a negative errno and *err. */
int feed_sql_ask_devices(const char *path, bool live, enum feed_part part, struct kymo_error *err);
/* Puts them in place of those of the feed, which a path is added to. Errors are ignored: lanes stay
   empty. */
void feed_sql_take_devices(struct feed *feed, int fd, const char *path, enum feed_part part);
/* Adds what a child has written, as zone_record.h describes it: untrusted. */
int feed_sql_read(struct feed *feed, int fd, const char *path, struct kymo_error *err);

#endif
