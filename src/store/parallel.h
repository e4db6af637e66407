/* The same work for many items, on several threads. */
#ifndef KYMO_STORE_PARALLEL_H
#define KYMO_STORE_PARALLEL_H

#include <stddef.h>

/* Calls each(i, context) once for each i below count, in any order, and returns when all are done.
   As many threads as there are cores, at most 8; the caller is one of them, and does all of it if
   no other can be started. */
void parallel_each(size_t count, void (*each)(size_t i, void *context), void *context);

#endif
