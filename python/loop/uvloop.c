/*
 * uvloop runs a callback between PyContext_Enter() and PyContext_Exit(), which it calls through the
 * table of addresses of its own library. These two entries are replaced; those of other libraries
 * stay. A library whose table is read-only (BIND_NOW and RELRO) is left alone.
 */
#include "loop.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

#include <kymo/atomic.h>

#if defined(__x86_64__)
#define UVLOOP_SLOT R_X86_64_JUMP_SLOT
#elif defined(__aarch64__)
#define UVLOOP_SLOT R_AARCH64_JUMP_SLOT
#endif

static int uvloop_enter(PyObject *context)
{
	struct loop_thread *thread = &loop_thread;
	int rc = PyContext_Enter(context);

	if (!rc && !thread->depth++)
		thread->began_ticks = loop_ticks();
	return rc;
}

static int uvloop_exit(PyObject *context)
{
	struct loop_thread *thread = &loop_thread;
	uint64_t taken;

	if (thread->depth == 1) {
		taken = loop_ticks() - thread->began_ticks;
		thread->depth = 0;
		if (taken >= loop_least_ticks)
			loop_stall_after(thread, thread->began_ticks, taken, NULL,
					 SCHEMA_LOOP_UVLOOP);
		thread->nested = 0;
	} else if (thread->depth) {
		thread->depth--;
	}
	return PyContext_Exit(context);
}

#ifdef UVLOOP_SLOT

/* What the dynamic section of a library tells. */
struct uvloop_tables {
	const ElfW(Rela) * slots;
	size_t slot_count;
	const ElfW(Sym) * symbols;
	const char *texts;
	bool bound; /* the table of addresses is read-only */
};

/* glibc has added the base to these addresses. */
static void uvloop_read(const struct link_map *map, struct uvloop_tables *out)
{
	memset(out, 0, sizeof(*out));
	for (const ElfW(Dyn) *at = map->l_ld; at->d_tag != DT_NULL; at++)
		switch (at->d_tag) {
		case DT_JMPREL: out->slots = (const void *)at->d_un.d_ptr; break;
		case DT_PLTRELSZ: out->slot_count = at->d_un.d_val / sizeof(*out->slots); break;
		case DT_SYMTAB: out->symbols = (const void *)at->d_un.d_ptr; break;
		case DT_STRTAB: out->texts = (const void *)at->d_un.d_ptr; break;
		case DT_BIND_NOW: out->bound = true; break;
		case DT_FLAGS: out->bound |= (at->d_un.d_val & DF_BIND_NOW) != 0; break;
		case DT_FLAGS_1: out->bound |= (at->d_un.d_val & DF_1_NOW) != 0; break;
		default: break;
		}
}

/* The place of the address of a function; NULL: the library does not call it. */
static void **uvloop_slot(const struct link_map *map, const char *name)
{
	struct uvloop_tables tables;

	uvloop_read(map, &tables);
	if (!tables.slots || !tables.symbols || !tables.texts || tables.bound)
		return NULL;
	for (size_t i = 0; i < tables.slot_count; i++) {
		const ElfW(Rela) *slot = &tables.slots[i];
		const ElfW(Sym) *symbol = &tables.symbols[ELF64_R_SYM(slot->r_info)];

		if (ELF64_R_TYPE(slot->r_info) == UVLOOP_SLOT &&
		    !strcmp(tables.texts + symbol->st_name, name))
			return (void **)(map->l_addr + slot->r_offset);
	}
	return NULL;
}

static void **uvloop_slots[2]; /* of PyContext_Enter and PyContext_Exit; NULL: not replaced */

static void uvloop_replace(const char *path)
{
	/* It is loaded: this only finds it, and it is never unloaded. */
	struct link_map *map = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	void **enter = map ? uvloop_slot(map, "PyContext_Enter") : NULL;
	void **leave = map ? uvloop_slot(map, "PyContext_Exit") : NULL;

	if (enter && leave) {
		uvloop_slots[0] = enter;
		uvloop_slots[1] = leave;
		kymo__store_release(leave, (void *)uvloop_exit);
		kymo__store_release(enter, (void *)uvloop_enter);
	} else if (map) {
		dlclose(map);
	}
}

static void uvloop_find(PyObject *module)
{
	PyObject *file = PyModule_Check(module) ? PyModule_GetFilenameObject(module) : NULL;
	const char *path = file ? PyUnicode_AsUTF8(file) : NULL;

	if (path)
		uvloop_replace(path);
	Py_XDECREF(file);
}

void loop_uvloop_look(void)
{
	static bool done; /* guarded by the GIL */
	PyObject *modules, *module, *kind, *value, *trace;

	if (done)
		return;
	PyErr_Fetch(&kind, &value, &trace);
	modules = PyImport_GetModuleDict();
	module = modules ? PyDict_GetItemString(modules, "uvloop.loop") : NULL; /* borrowed */
	if (module && loop_least_ticks) {
		done = true;
		uvloop_find(module);
	}
	PyErr_Restore(kind, value, trace);
}

void loop_uvloop_disarm(void)
{
	if (!uvloop_slots[0])
		return;
	kymo__store_release(uvloop_slots[0], (void *)PyContext_Enter);
	kymo__store_release(uvloop_slots[1], (void *)PyContext_Exit);
	uvloop_slots[0] = NULL;
}

#else

void loop_uvloop_look(void)
{
	(void)uvloop_enter;
	(void)uvloop_exit;
}

void loop_uvloop_disarm(void)
{
}

#endif
