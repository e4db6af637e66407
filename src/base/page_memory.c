#include "base/page_memory.h"

#include <string.h>
#include <sys/mman.h>

void *page_memory_take(size_t bytes)
{
	void *memory;

	if (!bytes)
		bytes = 1;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return memory == MAP_FAILED ? NULL : memory;
}

void page_memory_give(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes ? bytes : 1);
}

void *page_memory_grow(void *memory, size_t *room_bytes, size_t need_bytes)
{
	size_t room = *room_bytes ? *room_bytes : 16384;
	void *larger;

	if (memory && need_bytes <= *room_bytes)
		return memory;
	while (room < need_bytes) {
		if (room > (size_t)-1 / 4)
			return NULL;
		room *= 2;
	}
	larger = memory ? mremap(memory, *room_bytes, room, MREMAP_MAYMOVE)
			: page_memory_take(room);
	if (!larger || larger == MAP_FAILED)
		return NULL;
	*room_bytes = room;
	return larger;
}

static void swap_items(char *a, char *b, size_t bytes)
{
	char part[64];

	while (bytes) {
		size_t now = bytes < sizeof(part) ? bytes : sizeof(part);

		memcpy(part, a, now);
		memcpy(a, b, now);
		memcpy(b, part, now);
		a += now;
		b += now;
		bytes -= now;
	}
}

static void sift_down(char *items, size_t root, size_t count, size_t bytes,
		      int (*compare)(const void *, const void *))
{
	for (;;) {
		size_t child = 2 * root + 1;

		if (child >= count)
			return;
		if (child + 1 < count &&
		    compare(items + child * bytes, items + (child + 1) * bytes) < 0)
			child++;
		if (compare(items + root * bytes, items + child * bytes) >= 0)
			return;
		swap_items(items + root * bytes, items + child * bytes, bytes);
		root = child;
	}
}

void page_memory_sort(void *items, size_t count, size_t item_bytes,
		      int (*compare)(const void *, const void *))
{
	char *base = items;

	for (size_t root = count / 2; root-- > 0;)
		sift_down(base, root, count, item_bytes, compare);
	for (size_t end = count; end-- > 1;) {
		swap_items(base, base + end * item_bytes, item_bytes);
		sift_down(base, 0, end, item_bytes, compare);
	}
}
