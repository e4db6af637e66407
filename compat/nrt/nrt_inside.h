/*
 * The implementation of nrt.h and nrt_profile.h. Unlike the rest of compat/, it is more than a
 * translation of names: the Neuron runtime is not available, so this folder can run models itself.
 *
 *	nrt_runtime.c	init, close, load, unload, execute
 *	nrt_text.c	the text of a model
 *	nrt_opencl.c	models on OpenCL
 *	nrt_standin.c	models on the host, which only take time
 *	nrt_profile.c	profiles of one model, and continuous profiling
 *	nrt_inspect.c	inspect sessions
 *	nrt_config.c	options of a session
 *	nrt_environ.c	options from the environment
 *	nrt_capture.c	recording, and the files
 *
 * Two locks. nrt_lock() protects all state and is held briefly, since every execution takes it
 * twice. Calls that begin, end or save something hold nrt_control() throughout, including file
 * output, and take nrt_lock() inside it to change or read state that executions use. So no model
 * waits for a file.
 */
#ifndef KYMO_COMPAT_NRT_INSIDE_H
#define KYMO_COMPAT_NRT_INSIDE_H

#include <kymo/kymo.h>
#include <nrt/nrt_profile.h>

#define NRT_CORES 64u
#define NRT_NAME_BYTES 64u
#define NRT_PATH_BYTES 1024u
#define NRT_OPERATIONS 64u /* of a model */

/* ---- events and activities: one list each -------------------------------------------------- */

/* upper, its name, who sees it */
#define NRT_EVENTS(X) \
	X(LOAD, "nrt_load", "software") \
	X(UNLOAD, "nrt_unload", "software") \
	X(EXECUTE, "nrt_execute", "software") \
	X(EXECUTION, "execution", "hardware") \
	X(KERNEL, "kernel", "hardware") \
	X(COPY, "copy", "hardware")

enum nrt_event {
#define X(upper, name, side) NRT_EVENT_##upper,
	NRT_EVENTS(X)
#undef X
		NRT_EVENT_COUNT
};

#define NRT_SYSTEM 1u
#define NRT_DEVICE 2u
#define NRT_HOST_MEMORY 4u
#define NRT_CPU_UTIL 8u

/* ---- options -------------------------------------------------------------------------------- */

struct nrt_inspect_config {
	char *output_dir; /* NULL: ./output */
	int session_id;
	uint32_t activities; /* NRT_SYSTEM, … */
	uint32_t events; /* bits by enum nrt_event */
	uint64_t cores; /* bits */
	uint64_t events_per_core;
	uint64_t warmup; /* executions of each model */
	bool enable_called, enable, on_fail;
	bool file_per_model;
};

/* Bits of the events that a word names: one of them, hardware, software; 0: none. */
uint32_t nrt_event_bits(const char *word, size_t bytes);
void nrt_config_defaults(struct nrt_inspect_config *config); /* output_dir is not freed */
/* Reads the environment and reports mistakes in it. NRT_RESOURCE: no memory. */
NRT_STATUS nrt_config_from_environment(struct nrt_inspect_config *config);
/* NEURON_RT_INSPECT_ENABLE=1 or ON_FAIL=1: nrt_init() begins a session. */
bool nrt_environment_enables(void);
/* Whether to capture from the start, not only around failures. */
static inline bool nrt_config_captures(const struct nrt_inspect_config *config)
{
	return !config->enable_called || config->enable;
}

/* ---- models ---- */

struct nrt_operation {
	char name[NRT_NAME_BYTES];
	uint64_t microseconds; /* a fake's */
};

/* A parsed model text. */
struct nrt_text {
	bool is_fake;
	char name[NRT_NAME_BYTES];
	uint64_t size; /* work items of a kernel */
	uint64_t fail_every; /* 0: never */
	size_t count;
	struct nrt_operation operations[NRT_OPERATIONS];
};

/* Returns NULL, or the error. */
const char *nrt_text_parse(const char *text, size_t bytes, struct nrt_text *out);

/* When an operation was queued, submitted, started and ended. */
struct nrt_times {
	uint64_t queued, submit, start, end;
};

/* A backend that runs models. Times are kymo_ticks(), unless the device has its own clock; then
   clock() is not NULL and reads it. */
struct nrt_backend {
	/* Once, when the first model of that kind is loaded. NRT_FAILURE and *why: there is no such
	   device. */
	NRT_STATUS (*open)(const char **why);
	/* The device's name; after open. */
	const char *(*name)(void);
	/* Nanoseconds of the device's own clock, now; NULL: its times are kymo's ticks. */
	uint64_t (*clock)(void);
	/* *out is passed to run and unload. NRT_INVALID: the text does not compile; the error was
	   printed. */
	NRT_STATUS(*load)
	(const char *text, size_t bytes, const struct nrt_text *about, uint32_t core, void **out);
	/* Runs all operations once and waits. times has one entry per operation of the text. */
	NRT_STATUS(*run)
	(void *loaded, const struct nrt_text *about, uint32_t core, struct nrt_times *times);
	void (*unload)(void *loaded);
};
extern const struct nrt_backend nrt_opencl, nrt_standin;

/* A model name, kept as long as the process lives: models of one name that are loaded one after
   another are one model in the recording. */
struct nrt_known {
	struct nrt_known *next;
	char name[NRT_NAME_BYTES];
	uint32_t id; /* of kymo_device_model_add() */
	uint32_t name_id; /* used by its rows; updated by each save */
	bool loaded;
	uint64_t inspect_seen; /* executions in this session */
	uint64_t inspect_from; /* ticks: later ones count; 0: none yet */
};

struct nrt_model {
	struct nrt_model *next;
	struct nrt_known *known;
	const struct nrt_backend *backend;
	void *loaded;
	uint32_t core;
	uint32_t running; /* threads inside nrt_execute() */
	uint64_t executions;
	struct nrt_text text;
};

/* ---- state ---- */

void nrt_lock(void);
void nrt_unlock(void);
void nrt_control(void);
void nrt_control_end(void);
bool nrt_control_soon(void); /* false: not acquired within a second */
/* Call with the lock. NULL: no loaded model at that address. */
struct nrt_model *nrt_find_model(const nrt_model_t *model);
struct nrt_known *nrt_all_known(void);

/* nrt_profile.c, with the lock. */
bool nrt_is_profiled(const struct nrt_known *known);
bool nrt_profiles_run(void); /* any, the continuous one too */
bool nrt_continuous_runs(void);
void nrt_continuous_ran(uint32_t core, struct nrt_known *known);
/* In a forked child: drops the parent's profiles and sessions. */
void nrt_profiles_forget(void);
void nrt_inspect_forget(void);
/* At exit: reports profiles that were not stopped. */
void nrt_say_unfinished(void);

/* nrt_inspect.c, with the lock. The session's options; NULL: none runs. */
const struct nrt_inspect_config *nrt_inspect_now(void);
/* Before an execution: whether the session records its operations. */
bool nrt_inspect_wants(struct nrt_known *known, uint32_t core);
/* After an execution. True: it failed; call nrt_inspect_failed() without the lock. */
bool nrt_inspect_ran(NRT_STATUS status);
void nrt_inspect_failed(const struct nrt_known *known);
/* Without the lock: nrt_inspect_begin() for a session that the environment asks for. */
NRT_STATUS nrt_inspect_begin_at_init(void);

/* ---- nrt_capture.c ---- */

/* Turns recording on. rows: the operations that a ring keeps. NRT_FAILURE: recording cannot start;
   the reason was printed. */
NRT_STATUS nrt_capture_begin(uint64_t rows);
/* After a capture, with both locks: turns devices off again if we turned them on and nothing else
   captures. */
void nrt_capture_end(void);
/* Whether device operations are recorded for another reason. */
bool nrt_capture_by_others(void);
/* Begins a zone for a runtime call; end it with kymo_zone_end(). No effect while zones are off. */
struct kymo_zone nrt_capture_call(enum nrt_event event, uint32_t core);
/* Records one execution with its operations and status. */
void nrt_capture_execution(const struct nrt_model *model, const struct nrt_times *whole,
			   const struct nrt_times *times, NRT_STATUS status);
/* Records CPU and memory of this process as counters, at intervals. */
void nrt_capture_counters(uint32_t activities);

/* Selects the rows of a file. */
struct nrt_selection {
	uint64_t from_ticks; /* earlier rows are left out */
	const struct nrt_known *model; /* NULL: all */
	uint32_t core; /* NRT_CORES: all */
	const struct nrt_inspect_config *config; /* NULL: no filters, only the device */
};
/* Call with nrt_control(), not nrt_lock(). Writes under another name and renames. NRT_FAILURE: the
   reason was printed, and an older file is intact. NRT_RESOURCE: no memory. */
NRT_STATUS nrt_capture_save(const char *path, const struct nrt_selection *selection);
/* Saves as DIRECTORY/STEM_N.kymo with the first free N; creates the directory. directory NULL:
   ./output */
NRT_STATUS nrt_capture_save_in(const char *directory, const char *stem,
			       const struct nrt_selection *selection);

/* ---- small things ---- */

/* One line to stderr, in one write. */
void nrt_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A copy of the text; NULL: no memory. */
char *nrt_copy(const char *text);

#endif
