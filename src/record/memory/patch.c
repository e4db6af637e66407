/*
 * Redirects the calls of loaded objects, and restores them. All slots with a function's address are
 * searched each time, because objects are loaded and unloaded. It runs under the loader's lock:
 * otherwise it could meet an object that is being relocated, and make it read-only while the linker
 * writes it. That lock has no name, but dlsym holds it while it calls an IFUNC resolver, and the
 * resolver is ours.
 */
#include "record/memory/memory.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <kymo/atomic.h>

#if defined(__x86_64__)
#define IS_SLOT(type, addend) \
	((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT || \
	 ((type) == R_X86_64_64 && !(addend)))
#elif defined(__aarch64__)
#define IS_SLOT(type, addend) \
	((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT || \
	 ((type) == R_AARCH64_ABS64 && !(addend)))
#else
#define IS_SLOT(type, addend) 0
#endif

enum work { NOTHING, REDIRECT, PUT_BACK };
/* volatile: dlsym is declared as never calling back */
static __thread volatile enum work work __attribute__((tls_model("initial-exec")));

struct object {
	uintptr_t base, relro_start, relro_end;
	const ElfW(Rela) * calls, *relocations;
	size_t call_count, relocation_count;
	const ElfW(Sym) * symbols;
	const char *names;
	bool defines; /* it contains the allocator: its own names are not imported */
	bool open; /* its read-only part is temporarily writable */
};

/* ---- one object ------------------------------------------------------------------------------ */

static void read_dynamic(struct object *object, const ElfW(Dyn) * entry)
{
	size_t relative = 0;

	for (; entry->d_tag != DT_NULL; entry++) {
		uintptr_t at = entry->d_un.d_ptr;

		at = at < object->base ? at + object->base : at; /* vdso: not relocated */
		switch (entry->d_tag) {
		case DT_JMPREL: object->calls = (const void *)at; break;
		case DT_RELA: object->relocations = (const void *)at; break;
		case DT_SYMTAB: object->symbols = (const void *)at; break;
		case DT_STRTAB: object->names = (const void *)at; break;
		case DT_PLTRELSZ:
			object->call_count = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_RELASZ:
			object->relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_RELACOUNT: relative = entry->d_un.d_val; break;
		default: break;
		}
	}
	if (relative < object->relocation_count) { /* relative ones come first, and have no name */
		object->relocations += object->relocations ? relative : 0;
		object->relocation_count -= relative;
	} else if (relative) {
		object->relocation_count = 0;
	}
}

static void patch_read_headers(struct object *object, const struct dl_phdr_info *info)
{
	const uintptr_t page = 4095;

	memset(object, 0, sizeof(*object));
	object->base = info->dlpi_addr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *head = &info->dlpi_phdr[i];
		uintptr_t start = object->base + head->p_vaddr;

		if (head->p_type == PT_DYNAMIC)
			read_dynamic(object, (const void *)start);
		if (head->p_type == PT_GNU_RELRO) {
			object->relro_start = start & ~page;
			object->relro_end = (start + head->p_memsz) & ~page;
		}
	}
}

static bool writable(struct object *object, uintptr_t slot)
{
	if (slot < object->relro_start || slot >= object->relro_end || object->open)
		return true;
	object->open = !syscall(SYS_mprotect, object->relro_start,
				object->relro_end - object->relro_start, PROT_READ | PROT_WRITE);
	return object->open;
}

static const struct memory_hook *hook_of(const char *name)
{
	if (!strchr("mcrfpavd", name[0]))
		return NULL;
	for (const struct memory_hook *hook = memory_hooks; hook->name; hook++)
		if (!strcmp(hook->name, name))
			return hook;
	return NULL;
}

/* The previous function: the one the whole program calls. */
static void *real_of(const char *name)
{
	static const struct {
		const char *name;
		void **real;
	} rows[] = {
#define ROW(function) { #function, (void **)(void *)&memory_real.function }
		ROW(malloc),
		ROW(free),
		ROW(calloc),
		ROW(realloc),
		ROW(memalign),
		ROW(valloc),
		ROW(posix_memalign),
		ROW(aligned_alloc),
		ROW(pvalloc),
		ROW(mmap),
		ROW(reallocarray),
		ROW(munmap),
		ROW(dlopen),
		ROW(dlclose),
		{ "mmap64", (void **)(void *)&memory_real.mmap },
		{ "cfree", (void **)(void *)&memory_real.free },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, name))
			return *rows[i].real;
	return NULL;
}

/* A slot that was never called holds its own stub; one that another tool has replaced is left
   alone. */
static void do_slot(struct object *object, uintptr_t at, const struct memory_hook *hook)
{
	void **slot = (void **)at;
	void *now = kymo__load_relaxed(slot);
	void *next = work == REDIRECT ? hook->function : real_of(hook->name);

	if (!next || now == next || (work == PUT_BACK && now != hook->function))
		return;
	if (work == REDIRECT && !now)
		return; /* weak and undefined */
	if (writable(object, at))
		kymo__store_relaxed(slot, next);
}

static void do_slots(struct object *object, const ElfW(Rela) * slot, size_t count)
{
	for (size_t i = 0; slot && i < count; i++) {
		const struct memory_hook *hook;
		const ElfW(Sym) * symbol;

		if (!IS_SLOT(ELF64_R_TYPE(slot[i].r_info), slot[i].r_addend))
			continue;
		symbol = &object->symbols[ELF64_R_SYM(slot[i].r_info)];
		if (symbol->st_shndx != SHN_UNDEF && !object->defines)
			continue; /* local: most slots of a large library are */
		hook = hook_of(object->names + symbol->st_name);
		if (hook)
			do_slot(object, object->base + slot[i].r_offset, hook);
	}
}

/* ---- all of them ----------------------------------------------------------------------------- */

extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static uint64_t seen_adds; /* objects ever loaded when calls were last redirected */

static bool patch_holds(const struct dl_phdr_info *info, uintptr_t address)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    address - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) <
			    info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

/* This library, the recorder, and the linker itself, recognised by symbols only it has. */
static bool is_left_alone(const struct dl_phdr_info *info)
{
	return patch_holds(info, (uintptr_t)&__ehdr_start) ||
	       patch_holds(info, (uintptr_t)memory_recorder) ||
	       patch_holds(info, (uintptr_t)&_r_debug) || strstr(info->dlpi_name, "linux-vdso");
}

/* For a caller, only the rest of its call table matters; the allocator's own mappings are counted
   by their blocks. */
static int do_object(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	struct object object;

	(void)bytes, (void)unused;
	if (work == REDIRECT)
		kymo__store_relaxed(&seen_adds, info->dlpi_adds);
	if (is_left_alone(info))
		return 0;
	patch_read_headers(&object, info);
	if (!object.symbols || !object.names)
		return 0;
	object.defines = patch_holds(info, (uintptr_t)memory_real.malloc) ||
			 patch_holds(info, (uintptr_t)memory_real.mmap);
	do_slots(&object, object.calls, object.call_count);
	do_slots(&object, object.relocations, object.relocation_count);
	if (object.open)
		syscall(SYS_mprotect, object.relro_start, object.relro_end - object.relro_start,
			PROT_READ);
	return 0;
}

static void nothing(void)
{
}

/* Called by dlsym, which holds the loader's lock; also during relocation, when there is nothing to
   do. */
__attribute__((used)) static void (*patch_choose(void))(void)
{
	if (work != NOTHING)
		dl_iterate_phdr(do_object, NULL);
	return nothing;
}

KYMO__EXPORT void kymo_memory_under_lock(void) __attribute__((ifunc("patch_choose")));

static void *own_handle(void)
{
	static void *handle;
	Dl_info info;

	if (!kymo__load_acquire(&handle) && dladdr((void *)memory_hooks[0].function, &info) &&
	    info.dli_fname)
		kymo__store_release(&handle,
				    memory_real.dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD));
	return kymo__load_acquire(&handle);
}

int memory_patch(bool on)
{
	void *handle = own_handle();

	if (!handle)
		return -ENOTSUP;
	work = on ? REDIRECT : PUT_BACK;
	(void)dlsym(handle, "kymo_memory_under_lock");
	work = NOTHING;
	return 0;
}

static int take_adds(struct dl_phdr_info *info, size_t bytes, void *out)
{
	(void)bytes;
	*(uint64_t *)out = info->dlpi_adds;
	return 1;
}

bool memory_patch_new(void)
{
	uint64_t adds = 0;

	dl_iterate_phdr(take_adds, &adds);
	return adds != kymo__load_relaxed(&seen_adds) && !memory_patch(true);
}
