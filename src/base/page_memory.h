/* Memory directly from the kernel, for code that also runs inside the recorded program, where
   malloc is forbidden. Untouched pages cost nothing. */
#ifndef KYMO_BASE_PAGE_MEMORY_H
#define KYMO_BASE_PAGE_MEMORY_H

#include <stddef.h>

/* Zeroed; NULL: out of memory. */
void *page_memory_take(size_t bytes);
void page_memory_give(void *memory, size_t bytes); /* NULL is allowed */
/* Makes room for need_bytes, doubling *room_bytes; NULL: out of memory, and the old memory is
   unchanged. */
void *page_memory_grow(void *memory, size_t *room_bytes, size_t need_bytes);
/* A heap sort: in place, unlike qsort(), which may allocate. */
void page_memory_sort(void *items, size_t count, size_t item_bytes,
		      int (*compare)(const void *, const void *));

#endif
