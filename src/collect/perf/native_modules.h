/* Rows of native.modules: the programs and libraries in which frames were sampled, with their build
   ids, so that a recording tells which files its names are from, on any machine. */
#ifndef KYMO_COLLECT_PERF_NATIVE_MODULES_H
#define KYMO_COLLECT_PERF_NATIVE_MODULES_H

#include "base/intern.h"
#include "collect/perf/native_walk.h"

struct native_module {
	struct module *module;
	pid_t pid;
	uint64_t load_address; /* what is added to an address of the file */
};

struct native_modules {
	struct native_module *list;
	size_t room, written;
	struct intern index;
	const struct module *last; /* of the frame before, most often the same */
	pid_t last_pid;
};

void native_modules_see(struct native_modules *modules, pid_t pid,
			const struct native_frame *frame);
/* Writes rows of new ones. After their symbols were read. */
void native_modules_write(struct native_modules *modules);
void native_modules_fini(struct native_modules *modules);

#endif
