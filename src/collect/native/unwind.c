/*
 * libdw is loaded only for native frames: loading it and its dependencies would slow down the start
 * of every other command. Separate debug information is not used: unwinding needs .eh_frame, and
 * names come from symbol tables. Lines come from debug information in the module, with a
 * time limit; the threads run meanwhile.
 */
#include "collect/native/unwind.h"

#include <errno.h>
#include <stdlib.h>

#if __has_include(<elfutils/libdwfl.h>)

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/install_path.h"
#include "collect/native/demangle.h"
#include "collect/native/maps.h"
#include "collect/native/process_memory.h"

#define LINES_WITHIN_NS 1000000000ull /* for all frames */
/* of a module; building the index of a larger one takes seconds */
#define LINES_FILE_BYTES (256ll << 20)

/* Functions of libdw and libelf, with their types from the header. */
#define FUNCTIONS(X) \
	X(dwfl_begin) \
	X(dwfl_end) \
	X(dwfl_report_begin) \
	X(dwfl_report_end) \
	X(dwfl_linux_proc_report) \
	X(dwfl_linux_proc_find_elf) \
	X(dwfl_addrmodule) \
	X(dwfl_module_addrinfo) \
	X(dwfl_module_info) \
	X(dwfl_module_getsrc) \
	X(dwfl_lineinfo) \
	X(dwfl_attach_state) \
	X(dwfl_getthread_frames) \
	X(dwfl_thread_state_registers) \
	X(dwfl_thread_state_register_pc) \
	X(dwfl_frame_pc)

struct unwind {
	void *library;
#define X(name) __typeof__(name) *name;
	FUNCTIONS(X)
#undef X
	pid_t pid;
	Dwfl *dwfl;
	const struct ptrace_stop *stop; /* the stack to unwind */
	struct unwind_frame *out;
	size_t count, most;
	uint64_t lines_ns; /* spent on lines */
};

/* ---- callbacks of libdw ---------------------------------------------------------------------- */

static __thread pid_t finding_pid;
static __thread __typeof__(dwfl_linux_proc_find_elf) *standard_find_elf;

static char lines_fit; /* its address marks modules whose lines are read */

/* Opens the file in the mount namespace of the process. */
static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	char path[4200];
	struct stat st;
	int fd;

	if (name[0] != '/')
		return standard_find_elf(module, userdata, name, base, file_name, elf);
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)finding_pid, name);
	fd = maps_open_regular(path);
	if (fd >= 0)
		*file_name = strdup(name);
	*userdata = fd >= 0 && !fstat(fd, &st) && st.st_size <= LINES_FILE_BYTES ? &lines_fit
										 : NULL;
	return fd;
}

static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)file, (void)link, (void)crc,
		(void)found;
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread_arg)
{
	struct unwind *unwind = context;

	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = unwind;
	return unwind->stop->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread_arg)
{
	(void)dwfl, (void)tid;
	*thread_arg = context;
	return true;
}

/* Reads the copied stack, and code and tables, which do not change, from the process. */
static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *context)
{
	const struct unwind *unwind = context;
	const struct ptrace_stop *stop = unwind->stop;

	(void)dwfl;
	if (address >= stop->sp && stop->stack_bytes >= 8 &&
	    address - stop->sp <= stop->stack_bytes - 8) {
		memcpy(result, stop->stack + (address - stop->sp), 8);
		return true;
	}
	return !process_memory_read(unwind->pid, address, result, 8);
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	struct unwind *unwind = context;

	unwind->dwfl_thread_state_register_pc(thread, unwind->stop->pc);
	return unwind->dwfl_thread_state_registers(
		thread, 0, (unsigned)unwind->stop->register_count, unwind->stop->registers);
}

/* ---- names ----------------------------------------------------------------------------------- */

static char *readable(const char *symbol)
{
	char *plain = demangle(symbol);

	return plain ? plain : strdup(symbol);
}

static char *module_and_offset(const char *path, uint64_t offset)
{
	const char *base = path ? strrchr(path, '/') : NULL;
	char *out = NULL;

	if (asprintf(&out, "%s+0x%" PRIx64, base ? base + 1 : path ? path : "?", offset) < 0)
		return NULL;
	return out;
}

/* Python frames are evaluated by one function or, since 3.14 and with some compilers, by one
   function for each instruction, connected by tail calls. In a stripped build these cannot be
   recognised, and Python frames come last. */
static bool is_evaluation(const char *symbol)
{
	static const char *const names[] = { "_PyEval_EvalFrameDefault", "_TAIL_CALL_" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(symbol, names[i], strlen(names[i])))
			return true;
	return false;
}

static const char *source_of(struct unwind *unwind, Dwfl_Module *module, Dwarf_Addr pc, int *line)
{
	uint64_t began_ns = clock_monotonic_ns();
	void **mark = NULL;
	const char *file = NULL;
	Dwfl_Line *found;

	unwind->dwfl_module_info(module, &mark, NULL, NULL, NULL, NULL, NULL, NULL);
	if (!mark || *mark != &lines_fit || unwind->lines_ns > LINES_WITHIN_NS)
		return NULL;
	found = unwind->dwfl_module_getsrc(module, pc);
	if (found)
		file = unwind->dwfl_lineinfo(found, NULL, line, NULL, NULL, NULL);
	unwind->lines_ns += clock_monotonic_ns() - began_ns;
	return file;
}

static void name_frame(struct unwind *unwind, Dwarf_Addr pc, struct unwind_frame *frame)
{
	Dwfl_Module *module = unwind->dwfl_addrmodule(unwind->dwfl, pc);
	const char *path = NULL, *symbol = NULL, *source = NULL;
	Dwarf_Addr start = 0;
	GElf_Off offset = 0;
	GElf_Sym sym;

	if (module) {
		path = unwind->dwfl_module_info(module, NULL, &start, NULL, NULL, NULL, NULL, NULL);
		symbol = unwind->dwfl_module_addrinfo(module, pc, &offset, &sym, NULL, NULL, NULL);
		source = source_of(unwind, module, pc, &frame->line);
	}
	if (source || path)
		frame->file = strdup(source ? source : path);
	frame->func = symbol ? readable(symbol) : module_and_offset(path, pc - start);
	frame->eval = symbol && is_evaluation(symbol);
}

static int unwind_take_frame(Dwfl_Frame *state, void *context)
{
	struct unwind *unwind = context;
	bool activation;
	Dwarf_Addr pc;

	if (unwind->count >= unwind->most || !unwind->dwfl_frame_pc(state, &pc, &activation))
		return DWARF_CB_ABORT;
	/* A return address may be after the end of its function. */
	name_frame(unwind, activation ? pc : pc - 1, &unwind->out[unwind->count++]);
	return DWARF_CB_OK;
}

/* ---- open and close -------------------------------------------------------------------------- */

static bool native_unwind_load(struct unwind *unwind)
{
	unwind->library = install_path_open("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!unwind->library)
		return false;
#define X(name) \
	unwind->name = (__typeof__(unwind->name))dlsym(unwind->library, #name); \
	if (!unwind->name) \
		return false;
	FUNCTIONS(X)
#undef X
	return true;
}

static bool unwind_begin(struct unwind *unwind)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = find_elf,
						  .find_debuginfo = no_debuginfo };
	static const Dwfl_Thread_Callbacks threads = { .next_thread = next_thread,
						       .get_thread = get_thread,
						       .memory_read = memory_read,
						       .set_initial_registers = set_registers };

	finding_pid = unwind->pid;
	standard_find_elf = unwind->dwfl_linux_proc_find_elf;
	unwind->dwfl = unwind->dwfl_begin(&callbacks);
	if (!unwind->dwfl)
		return false;
	unwind->dwfl_report_begin(unwind->dwfl);
	return !unwind->dwfl_linux_proc_report(unwind->dwfl, unwind->pid) &&
	       !unwind->dwfl_report_end(unwind->dwfl, NULL, NULL) &&
	       unwind->dwfl_attach_state(unwind->dwfl, NULL, unwind->pid, &threads, unwind);
}

int unwind_open(pid_t pid, struct unwind **out, struct kymo_error *err)
{
	struct unwind *unwind = calloc(1, sizeof(*unwind));

	*out = NULL;
	if (!unwind)
		return error_set(err, ENOMEM, "out of memory for native frames");
	unwind->pid = pid;
	if (!native_unwind_load(unwind)) {
		unwind_close(unwind);
		return error_set(err, ENOENT,
				 "cannot read native frames: libdw.so.1 is not installed; run "
				 "apt-get install libdw1");
	}
	*out = unwind;
	return 0;
}

size_t unwind_frames(struct unwind *unwind, const struct ptrace_stop *stop,
		     struct unwind_frame *out, size_t most)
{
	unwind->stop = stop;
	unwind->out = out;
	unwind->count = 0;
	unwind->most = most;
	/* Initialised with the first thread, because libdw requests a thread at once. */
	if (!unwind->dwfl && !unwind_begin(unwind))
		return 0;
	unwind->dwfl_getthread_frames(unwind->dwfl, stop->tid, unwind_take_frame, unwind);
	return unwind->count;
}

void unwind_close(struct unwind *unwind)
{
	if (!unwind)
		return;
	if (unwind->dwfl)
		unwind->dwfl_end(unwind->dwfl);
	if (unwind->library)
		dlclose(unwind->library);
	free(unwind);
}

#else

int unwind_open(pid_t pid, struct unwind **out, struct kymo_error *err)
{
	(void)pid;
	*out = NULL;
	return error_set(err, ENOTSUP,
			 "cannot read native frames: kymo was built without libdw; run apt-get "
			 "install libdw-dev and build again");
}

size_t unwind_frames(struct unwind *unwind, const struct ptrace_stop *stop,
		     struct unwind_frame *out, size_t most)
{
	(void)unwind, (void)stop, (void)out, (void)most;
	return 0;
}

void unwind_close(struct unwind *unwind)
{
	(void)unwind;
}

#endif
