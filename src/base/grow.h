/* Growing lists on the heap: for readers, views and the collector, never inside the recorded
   program. Each returns false if out of memory, and leaves the list unchanged. */
#ifndef KYMO_BASE_GROW_H
#define KYMO_BASE_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static inline bool grow_to(void **list, size_t count, size_t each)
{
	void *grown = reallocarray(*list, count, each);

	if (grown)
		*list = grown;
	return grown;
}

/* Makes room for one more than `used`. */
static inline bool grow(void **list, size_t *room, size_t used, size_t each)
{
	size_t more = *room ? *room * 2 : 64;

	if (used < *room)
		return true;
	if (!grow_to(list, more, each))
		return false;
	*room = more;
	return true;
}

/* Makes room for one more in a short list that does not keep its room: that is the first power of
   two above `used`. Every addition to the list goes through this. */
static inline bool grow_short(void **list, size_t used, size_t each)
{
	return (used & (used - 1)) || grow_to(list, used ? used * 2 : 1, each);
}

/* Makes a list of at least `wanted`; what is new is zeroed. */
static inline bool grow_zeroed(void **list, size_t *count, size_t wanted, size_t each)
{
	if (wanted <= *count)
		return true;
	if (!grow_to(list, wanted, each))
		return false;
	memset((char *)*list + *count * each, 0, (wanted - *count) * each);
	*count = wanted;
	return true;
}

#endif
