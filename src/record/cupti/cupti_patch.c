/*
 * Redirects the calls of CUPTI in loaded objects to cupti_hooks. It runs under the loader's lock,
 * as record/memory/patch.c does and for its reason: dlsym holds that lock while it calls an IFUNC
 * resolver. Objects that do not import CUPTI are left alone.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/atomic.h>

#include "record/cupti/cupti.h"

#if defined(__x86_64__)
#define IS_CALL(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_CALL(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#else
#define IS_CALL(type) 0
#endif

struct cupti_object {
	uintptr_t base, relro_start, relro_end;
	const ElfW(Rela) * lists[2];
	size_t counts[2];
	const ElfW(Sym) * symbols;
	const char *names;
	bool open; /* its read-only part is temporarily writable */
};

static __thread volatile bool patching; /* volatile: dlsym is declared as never calling back */
static uint64_t patched_adds; /* objects ever loaded when this was last done; atomic */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static void cupti_read_dynamic(struct cupti_object *object, const ElfW(Dyn) * entry)
{
	for (; entry->d_tag != DT_NULL; entry++) {
		uintptr_t at = entry->d_un.d_ptr;

		at = at < object->base ? at + object->base : at; /* vdso: not relocated */
		switch (entry->d_tag) {
		case DT_JMPREL: object->lists[0] = (const void *)at; break;
		case DT_RELA: object->lists[1] = (const void *)at; break;
		case DT_SYMTAB: object->symbols = (const void *)at; break;
		case DT_STRTAB: object->names = (const void *)at; break;
		case DT_PLTRELSZ: object->counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
		case DT_RELASZ: object->counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
		default: break;
		}
	}
}

static void cupti_read_headers(struct cupti_object *object, const struct dl_phdr_info *info)
{
	const uintptr_t page = 4095;

	memset(object, 0, sizeof(*object));
	object->base = info->dlpi_addr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *head = &info->dlpi_phdr[i];
		uintptr_t start = object->base + head->p_vaddr;

		if (head->p_type == PT_DYNAMIC)
			cupti_read_dynamic(object, (const void *)start);
		if (head->p_type == PT_GNU_RELRO) {
			object->relro_start = start & ~page;
			object->relro_end = (start + head->p_memsz) & ~page;
		}
	}
}

static bool make_writable(struct cupti_object *object, uintptr_t slot)
{
	if (slot < object->relro_start || slot >= object->relro_end || object->open)
		return true;
	object->open = !mprotect((void *)object->relro_start,
				 object->relro_end - object->relro_start, PROT_READ | PROT_WRITE);
	return object->open;
}

static void patch_slot(struct cupti_object *object, const ElfW(Rela) * slot)
{
	const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(slot->r_info)];
	const char *name = object->names + symbol->st_name;
	void **at = (void **)(object->base + slot->r_offset);

	if (symbol->st_shndx != SHN_UNDEF || strncmp(name, "cupti", 5) != 0)
		return;
	for (const struct cupti_hook *hook = cupti_hooks; hook->name; hook++)
		if (!strcmp(hook->name, name) && kymo__load_relaxed(at) &&
		    make_writable(object, (uintptr_t)at))
			kymo__store_relaxed(at, hook->function);
}

static bool patch_is_own(const struct dl_phdr_info *info)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    (uintptr_t)&__ehdr_start - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) <
			    info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

static bool is_cupti(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, "libcupti.so", 11);
}

static int patch_object(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	struct cupti_object object;

	(void)bytes, (void)unused;
	kymo__store_relaxed(&patched_adds, info->dlpi_adds);
	if (patch_is_own(info) || is_cupti(info->dlpi_name) ||
	    strstr(info->dlpi_name, "linux-vdso"))
		return 0;
	cupti_read_headers(&object, info);
	for (int list = 0; list < 2 && object.symbols && object.names; list++)
		for (size_t i = 0; object.lists[list] && i < object.counts[list]; i++)
			if (IS_CALL(ELF64_R_TYPE(object.lists[list][i].r_info)))
				patch_slot(&object, &object.lists[list][i]);
	if (object.open)
		mprotect((void *)object.relro_start, object.relro_end - object.relro_start,
			 PROT_READ);
	return 0;
}

static void cupti_nothing(void)
{
}

/* Called by dlsym; also during relocation, when there is nothing to do. */
__attribute__((used)) static void (*cupti_patch_choose(void))(void)
{
	if (patching)
		dl_iterate_phdr(patch_object, NULL);
	return cupti_nothing;
}

KYMO__EXPORT void kymo_cupti_under_lock(void) __attribute__((ifunc("cupti_patch_choose")));

static int cupti_take_adds(struct dl_phdr_info *info, size_t bytes, void *out)
{
	(void)bytes;
	*(uint64_t *)out = info->dlpi_adds;
	return 1;
}

void cupti_patch(void)
{
	uint64_t adds = 0;
	Dl_info info;
	void *own;

	dl_iterate_phdr(cupti_take_adds, &adds);
	if (adds == kymo__load_relaxed(&patched_adds) || !dladdr((void *)&__ehdr_start, &info) ||
	    !info.dli_fname)
		return;
	own = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!own)
		return;
	patching = true;
	(void)dlsym(own, "kymo_cupti_under_lock");
	patching = false;
	dlclose(own);
}
