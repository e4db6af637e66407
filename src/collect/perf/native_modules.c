#include "collect/perf/native_modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/schema.h"
#include "record/record.h"

#define MODULES_MOST 65536u

static bool same_native_module(const void *list, uint32_t number, const void *wanted)
{
	const struct native_module *a = (const struct native_module *)list + number, *b = wanted;

	return a->module == b->module && a->pid == b->pid && a->load_address == b->load_address;
}

void native_modules_see(struct native_modules *modules, pid_t pid, const struct native_frame *frame)
{
	struct native_module wanted = { .module = frame->module,
					.pid = pid,
					.load_address = frame->address - frame->in_file };
	uint64_t hash;

	if (!frame->module || (frame->module == modules->last && pid == modules->last_pid))
		return;
	modules->last = frame->module;
	modules->last_pid = pid;
	hash = intern_hash_number(intern_hash_number(frame->module->number, (uint64_t)pid),
				  wanted.load_address);
	if (intern_find(&modules->index, hash, same_native_module, modules->list, &wanted) !=
		    INTERN_NONE ||
	    modules->index.count >= MODULES_MOST ||
	    !grow((void **)&modules->list, &modules->room, modules->index.count, sizeof(wanted)))
		return;
	modules->list[modules->index.count] = wanted;
	intern_add(&modules->index, hash);
}

static uint32_t module_text(const char *text)
{
	return *text ? kymo__intern(text, strlen(text), "", 0, 0, KYMO_SOURCE_C, 0) : 0;
}

static uint32_t build_id_text(const struct module *module)
{
	const uint8_t *id = module->image.build_id;
	size_t bytes = module->open ? module->image.build_id_bytes : 0;
	char text[2 * ELF_IMAGE_BUILD_ID_MOST + 1] = "";

	for (size_t i = 0; i < bytes && i < ELF_IMAGE_BUILD_ID_MOST; i++)
		snprintf(text + 2 * i, sizeof(text) - 2 * i, "%02x", id[i]);
	return module_text(text);
}

static const char *symbols_word(const struct module *module)
{
	if (!module->open)
		return "unreadable";
	if (!module->symbols_tried || !module->symbols.count)
		return "none";
	if (module->debug.fd >= 0)
		return "debug file";
	return module->symbols.dynamic ? "dynamic" : "symbol table";
}

void native_modules_write(struct native_modules *modules)
{
	for (; modules->written < modules->index.count; modules->written++) {
		const struct native_module *one = &modules->list[modules->written];
		const struct module *module = one->module;
		struct schema_native_module_row row = {
			.load_address = one->load_address,
			.pid = one->pid,
			.path = module_text(module->path),
			.build_id = build_id_text(module),
			.symbols = module_text(symbols_word(module)),
			.lines = module->open && module->has_lines,
		};

		kymo__append(SCHEMA_NATIVE_MODULES, &row);
	}
}

void native_modules_fini(struct native_modules *modules)
{
	free(modules->list);
	intern_fini(&modules->index);
	memset(modules, 0, sizeof(*modules));
}
