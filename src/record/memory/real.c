/*
 * The real allocator. In a running program, our own linked calls identify it: the linker resolved
 * them like all others, to the C library or to jemalloc. (dlsym would not work: in a program that
 * is not position independent it returns the program's own stub, which leads back to us.) When
 * preloaded, they resolve to ourselves, and those of the next object are used.
 */
#undef _FILE_OFFSET_BITS /* or mmap has another name */

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/atomic.h>

#include "record/memory/memory.h"

struct memory_real memory_real;
bool memory_preloaded;
const void *memory_recorder;
static bool found;

/* Serves dlsym and constructors before the real allocator is known. Never freed. */
char memory_early_room[MEMORY_EARLY_BYTES] __attribute__((aligned(64)));
static size_t early_used;

void *memory_early(size_t bytes, size_t align)
{
	size_t start, at;

	if (align < 16)
		align = 16;
	if (bytes > sizeof(memory_early_room) || align > 4096)
		return NULL;
	do {
		at = kymo__load_relaxed(&early_used);
		start = (at + 16 + align - 1) & ~(align - 1);
		if (start > sizeof(memory_early_room) || bytes > sizeof(memory_early_room) - start)
			return NULL;
	} while (!kymo__cas_relaxed(&early_used, &at, start + bytes));
	memcpy(memory_early_room + start - 8, &bytes, sizeof(bytes));
	return memory_early_room + start;
}

size_t memory_early_bytes(const void *ptr)
{
	size_t bytes;

	memcpy(&bytes, (const char *)ptr - 8, sizeof(bytes));
	return bytes;
}

#define FUNCTIONS(X) \
	X(malloc) \
	X(free) \
	X(calloc) \
	X(realloc) \
	X(posix_memalign) \
	X(aligned_alloc) \
	X(memalign) X(valloc) X(pvalloc) X(reallocarray) X(mmap) X(munmap) X(dlopen) X(dlclose)

static const struct function {
	const char *name;
	size_t offset;
} functions[] = {
#define X(function) { #function, offsetof(struct memory_real, function) },
	FUNCTIONS(X)
#undef X
};
#define COUNT (sizeof(functions) / sizeof(functions[0]))

static void real_set(size_t i, void *address)
{
	memcpy((char *)&memory_real + functions[i].offset, &address, sizeof(address));
}

/* Calls, so that each has its own slot in the call table; never executed.
   NOLINTBEGIN(clang-analyzer-unix.Malloc) */
__attribute__((used, noinline)) void memory_real_calls(void *volatile p)
{
	p = malloc(1);
	free(p);
	p = calloc(1, (size_t)p);
	p = realloc(p, 1);
	if (posix_memalign((void **)&p, 16, 1))
		p = aligned_alloc(16, (size_t)p);
	p = memalign(16, (size_t)p);
	p = valloc((size_t)p);
	p = pvalloc((size_t)p);
	p = reallocarray(p, 1, 1);
	p = mmap(p, 1, 0, 0, 0, 0);
	munmap(p, 1);
	p = dlopen(p, 0);
	dlclose(p);
}
/* NOLINTEND(clang-analyzer-unix.Malloc) */

static const void *table_at(const ElfW(Dyn) * dynamic, ElfW(Sxword) tag, uintptr_t base)
{
	for (; dynamic->d_tag != DT_NULL; dynamic++)
		/* glibc's linker relocates them in place, musl's does not */
		if (dynamic->d_tag == tag)
			return (const void *)(dynamic->d_un.d_ptr < base
						      ? dynamic->d_un.d_ptr + base
						      : dynamic->d_un.d_ptr);
	return NULL;
}

static size_t real_value_of(const ElfW(Dyn) * dynamic, ElfW(Sxword) tag)
{
	for (; dynamic->d_tag != DT_NULL; dynamic++)
		if (dynamic->d_tag == tag)
			return dynamic->d_un.d_val;
	return 0;
}

/* This library's own; link.h declares it without hidden visibility.
   NOLINTNEXTLINE(readability-redundant-declaration) */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* Our own call table, filled by the linker. */
static void take_linked(void)
{
	uintptr_t base = (uintptr_t)&__ehdr_start;
	const ElfW(Rela) *slots = table_at(_DYNAMIC, DT_JMPREL, base);
	const ElfW(Sym) *symbols = table_at(_DYNAMIC, DT_SYMTAB, base);
	const char *names = table_at(_DYNAMIC, DT_STRTAB, base);
	size_t count = real_value_of(_DYNAMIC, DT_PLTRELSZ) / sizeof(*slots);

	for (size_t i = 0; slots && i < count; i++) {
		const char *name = names + symbols[ELF64_R_SYM(slots[i].r_info)].st_name;

		for (size_t k = 0; k < COUNT; k++)
			if (!strcmp(name, functions[k].name))
				real_set(k, *(void **)(base + slots[i].r_offset));
	}
}

static void take_next(void)
{
	for (size_t i = 0; i < COUNT; i++)
		real_set(i, dlsym(RTLD_NEXT, functions[i].name));
}

bool memory_real_find(void)
{
	static uint32_t looking;
	uint32_t none = 0;

	if (kymo__load_acquire(&found))
		return true;
	/* One thread searches; its allocations meanwhile use early memory. */
	if (!kymo__cas_acquire(&looking, &none, 1))
		return false;
	take_linked();
	memory_preloaded = memory_real.malloc == memory_hooks[0].function;
	if (memory_preloaded)
		take_next();
	kymo__store_release(&found, memory_real.malloc && memory_real.free);
	return found;
}

struct span {
	uintptr_t start, end;
};

static bool is_in(struct span *span, const void *landmark, const void *address)
{
	struct dl_find_object object;

	if (!span->end) {
		if (_dl_find_object((void *)landmark, &object))
			return false;
		span->start = (uintptr_t)object.dlfo_map_start;
		kymo__store_release(&span->end, (uintptr_t)object.dlfo_map_end);
	}
	return (uintptr_t)address >= span->start && (uintptr_t)address < span->end;
}

bool memory_in_allocator(const void *address)
{
	static struct span allocator, recorder;

	return is_in(&allocator, (const void *)memory_real.malloc, address) ||
	       is_in(&recorder, memory_recorder, address);
}
