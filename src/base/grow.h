/* A list on the heap that grows: for readers and views, never inside a target. */
#ifndef KYMO_BASE_GROW_H
#define KYMO_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Makes room for one more than `used`; false: out of memory, and the list is as it was. */
static inline bool grow(void **list, size_t *room, size_t used, size_t each)
{
	size_t more = *room ? *room * 2 : 64;
	void *grown;

	if (used < *room)
		return true;
	grown = realloc(*list, more * each);
	if (!grown)
		return false;
	*list = grown;
	*room = more;
	return true;
}

#endif
