/* The place in the program's own code that a verdict names. */
#ifndef KYMO_VIEWS_VERDICTS_WHERE_H
#define KYMO_VIEWS_VERDICTS_WHERE_H

#include "base/buf.h"
#include "views/verdicts/verdict.h"

/* Bytes of a function's name without generators and lambdas: "f.<locals>.<lambda>" is f. */
size_t where_outer_bytes(const char *name);
/* Sets the place of a verdict from a frame, "function (file:line)"; "": none. */
void where_set(struct verdict *verdict, const char *place, double share);
/* Adds "function  file:line  87 %", escaped, with the file's name alone. Nothing if no place is
   known. */
void where_add_line(struct buf *out, const struct verdict *verdict);
/* Adds {"function":…,"file":…,"line":…,"share":…}, or null. */
void where_add_json(struct buf *out, const struct verdict *verdict);

#endif
