/* libtorch's functions by their mangled names: no single header of torch fits all versions. */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "torch.h"

struct symbols symbols;

/* Builds of libtorch_cpu that passed calibration and a model with known results. Any other build is
   tried in a child process first (_torch_auto.py). */
static const struct {
	const char *build;
	uint32_t sequence_offset, forward_thread_offset;
	const char *version;
} known[] = {
	{ "b7066ed94f422786bd205cd2743c2722b5f366fd", 200, 304, "2.13.0+cpu" },
	{ "feaefbc559e74298c67a4aca95dd5e2c49a4c739", 200, 248, "1.13.1+dfsg-4 of Debian 12" },
};

/* ---- the library ---- */

struct found {
	char path[1024];
	const char *note;
	size_t note_bytes;
};

static int look_at_library(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct found *found = context;
	const char *slash = strrchr(info->dlpi_name, '/');

	(void)bytes;
	if (strncmp(slash ? slash + 1 : info->dlpi_name, "libtorch_cpu.so", 15) != 0)
		return 0;
	snprintf(found->path, sizeof(found->path), "%s", info->dlpi_name);
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE) {
			found->note = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			found->note_bytes = info->dlpi_phdr[i].p_memsz;
			if (found->note_bytes >= sizeof(ElfW(Nhdr)) &&
			    ((const ElfW(Nhdr) *)(const void *)found->note)->n_type ==
				    NT_GNU_BUILD_ID)
				break;
		}
	return 1;
}

static size_t padded(size_t bytes)
{
	return (bytes + 3u) & ~(size_t)3u;
}

/* The build id among an object's notes, in hex. */
static void read_build_id(const struct found *found, char *out, size_t out_bytes)
{
	size_t at = 0;

	out[0] = '\0';
	while (found->note && found->note_bytes - at >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)(found->note + at);
		size_t name = padded(note->n_namesz), text = padded(note->n_descsz);
		size_t room = found->note_bytes - at - sizeof(*note);

		if (name > room || text > room - name)
			return;
		if (note->n_type == NT_GNU_BUILD_ID) {
			const uint8_t *id = (const uint8_t *)(note + 1) + name;

			for (size_t i = 0; i < note->n_descsz && 2 * i + 3 <= out_bytes; i++)
				snprintf(out + 2 * i, 3, "%02x", id[i]);
			return;
		}
		at += sizeof(*note) + name + text;
	}
}

bool symbols_known_build(void)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(known[i].build, symbols.build)) {
			symbols.sequence_offset = known[i].sequence_offset;
			symbols.forward_thread_offset = known[i].forward_thread_offset;
			return true;
		}
	return false;
}

/* ---- its functions ---- */

#define WANTED(field, name) \
	{ \
		name, (void **)(void *)&symbols.field \
	}

const char *symbols_find(void)
{
	const struct {
		const char *name;
		void **into;
	} wanted[] = {
		WANTED(peek, "_ZN2at15sequence_number4peekEv"),
		WANTED(add_callback, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"),
		WANTED(disable_callback, "_ZN2at15disableCallbackEm"),
		WANTED(reenable_callback, "_ZN2at16reenableCallbackEm"),
		WANTED(thread_id, "_ZN2at14RecordFunction15currentThreadIdEv"),
	};
	struct found found = { 0 };
	const char *lacking = NULL;
	void *library;

	if (symbols.complete)
		return NULL;
#ifndef __x86_64__
	return "callbacks of libtorch are supported on x86-64 only";
#endif
	dl_iterate_phdr(look_at_library, &found);
	library = found.path[0] ? dlopen(found.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	if (!library)
		return "libtorch_cpu.so is not loaded in this process";
	read_build_id(&found, symbols.build, sizeof(symbols.build));
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		*wanted[i].into = dlsym(library, wanted[i].name);
		if (!*wanted[i].into)
			lacking = "libtorch_cpu.so does not export the needed functions";
	}
	symbols.name = (const char *(*)(const void *))dlsym(library,
							    "_ZNK2at14RecordFunction4nameEv");
	dlclose(library); /* torch holds a reference */
	symbols.complete = !lacking;
	return lacking;
}

void *symbols_library(void)
{
	struct found found = { 0 };

	dl_iterate_phdr(look_at_library, &found);
	return found.path[0] ? dlopen(found.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* Whether a pointer there may be replaced: writing to a table that is const in some build would
   raise SIGSEGV. */
bool symbols_is_writable(const void *address)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long from, to;
	char rights[8], line[512];
	bool writable = false;

	if (!maps)
		return false;
	while (!writable && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%llx-%llx %7s", &from, &to, rights) == 3 &&
		    (uintptr_t)address >= from && (uintptr_t)address < to)
			writable = rights[1] == 'w';
	fclose(maps);
	return writable;
}
