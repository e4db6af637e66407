/* Records the executions of models, and writes the files of profiles. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <kymo/atomic.h>
#include <kymo/capture.h>
#include <kymo/device.h>

#include "nrt_inside.h"

#define OUTPUT_DIR "./output"
#define NUMBERS_MOST 1000000u
#define COUNTERS_EVERY_NS 100000000u
#define RING_ROWS_MOST 1048576u /* a longer ring would take a tenth of a gigabyte */

static const struct {
	const char *name;
} events[] = {
#define X(upper, name, side) { name },
	NRT_EVENTS(X)
#undef X
};

/* ---- on and off ---- */

static bool devices_on_by_us; /* they were off before */

NRT_STATUS nrt_capture_begin(uint64_t rows)
{
	struct kymo_error err = { 0 };
	bool were_on = kymo_device_enabled() && !devices_on_by_us;

	if (kymo_device_enable(&err)) {
		nrt_say("cannot profile: %s", err.text);
		return err.code == ENOMEM ? NRT_RESOURCE : NRT_FAILURE;
	}
	devices_on_by_us = !were_on;
	kymo_keep_rows("device.ops", rows < RING_ROWS_MOST ? rows : RING_ROWS_MOST);
	return NRT_SUCCESS;
}

void nrt_capture_end(void)
{
	if (!devices_on_by_us || nrt_profiles_run() || nrt_inspect_now())
		return;
	kymo_device_disable();
	devices_on_by_us = false;
}

bool nrt_capture_by_others(void)
{
	return kymo_device_enabled() && !devices_on_by_us;
}

/* ---- devices and cores ---- */

static int now_of_opencl(void *context, uint32_t local, uint64_t *out_ns)
{
	(void)context;
	(void)local;
	*out_ns = nrt_opencl.clock();
	return *out_ns ? 0 : -ENOSYS;
}

static const struct kymo_device_adapter adapters[] = {
	{ sizeof(struct kymo_device_adapter), "nrt", NULL, now_of_opencl, NULL },
	{ sizeof(struct kymo_device_adapter), "nrt", NULL, NULL, NULL },
};

/* Of the core as one of that backend; made when something runs there first. With the core's
   lock. */
static uint32_t nrt_capture_queue_of(const struct nrt_backend *backend, uint32_t core)
{
	static uint32_t devices[2], queues[2][NRT_CORES];
	uint32_t which = backend == &nrt_opencl ? 0 : 1;
	char name[16];

	if (queues[which][core])
		return queues[which][core];
	nrt_lock();
	if (!devices[which])
		devices[which] = kymo_device_add(&adapters[which], 0, backend->name());
	nrt_unlock();
	snprintf(name, sizeof(name), "vnc%u", core);
	queues[which][core] = kymo_device_queue_add(devices[which], name, core);
	return queues[which][core];
}

/* ---- rows ---- */

static uint32_t call_ids[NRT_EVENT_COUNT][NRT_CORES];

/* The core is the instance of the name, counted from 1. With the lock. */
struct kymo_zone nrt_capture_call(enum nrt_event event, uint32_t core)
{
	struct kymo_zone none = { 0 };
	uint32_t *id = &call_ids[event][core];

	if (!kymo_enabled())
		return none;
	if (!*id)
		kymo__store_relaxed(id,
				    kymo_name_full(events[event].name, strlen(events[event].name),
						   NULL, 0, 0, KYMO_SOURCE_C, core + 1));
	return kymo_zone_begin_id(*id);
}

static void nrt_capture_tell(const struct nrt_model *model, struct kymo_device_op *op,
			     const struct nrt_times *times, bool by_host)
{
	op->queued = times->queued;
	op->submit = times->submit;
	op->start = times->start;
	op->end = times->end;
	op->flags = by_host ? KYMO_DEVICE_HOST_TICKS : 0;
	op->model = model->known->id;
	kymo_device_op(op);
}

void nrt_capture_execution(const struct nrt_model *model, const struct nrt_times *whole,
			   const struct nrt_times *times, NRT_STATUS status)
{
	static uint64_t executions;
	struct kymo_device_op op = { .bytes = sizeof(op) };

	op.queue = nrt_capture_queue_of(model->backend, model->core);
	op.execution = kymo__add_fetch_relaxed(&executions, 1);
	kymo_device_launch(&op.launch);
	op.launch.ticks = whole->queued;
	op.kind = KYMO_DEVICE_KERNEL;
	for (size_t i = 0; i < model->text.count; i++) {
		if (!times[i].end)
			continue; /* it never ran */
		op.name = kymo_name(model->text.operations[i].name);
		nrt_capture_tell(model, &op, &times[i], !model->backend->clock);
	}
	op.kind = KYMO_DEVICE_EXECUTION;
	op.name = kymo_name(model->known->name);
	op.status = (int32_t)status;
	nrt_capture_tell(model, &op, whole, true);
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double resident_bytes(void)
{
	unsigned long all = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file)
		return 0;
	if (fscanf(file, "%lu %lu", &all, &resident) != 2)
		resident = 0;
	fclose(file);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

void nrt_capture_counters(uint32_t activities)
{
	static uint64_t last_ns;
	static double last_cpu;
	struct timespec now;
	uint64_t now_ns;
	double cpu;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	if (!(activities & (NRT_HOST_MEMORY | NRT_CPU_UTIL)) ||
	    (last_ns && now_ns - last_ns < COUNTERS_EVERY_NS))
		return;
	cpu = cpu_seconds();
	if (activities & NRT_HOST_MEMORY)
		kymo_counter("host_memory_bytes", resident_bytes());
	if (activities & NRT_CPU_UTIL && last_ns)
		kymo_counter("cpu_util_pct", (cpu - last_cpu) * 1e11 / (double)(now_ns - last_ns));
	last_ns = now_ns;
	last_cpu = cpu;
}

/* ---- choosing rows ---- */

/* What a file is made of, while it is being written. */
struct choice {
	const struct nrt_selection *selection;
	enum { CHOICE_OTHER, CHOICE_OPS, CHOICE_ZONES } table;
	uint64_t seen[NRT_CORES]; /* rows that were counted, by core */
	uint64_t written[NRT_CORES]; /* or passed over, as there are too many */
};

static bool wants_table(void *context, const char *table)
{
	struct choice *choice = context;
	const struct nrt_inspect_config *config = choice->selection->config;
	uint32_t activities = config ? config->activities : NRT_DEVICE;

	memset(choice->seen, 0, sizeof(choice->seen));
	memset(choice->written, 0, sizeof(choice->written));
	choice->table = !strcmp(table, "device.ops")	? CHOICE_OPS
			: !strcmp(table, "trace.zones") ? CHOICE_ZONES
							: CHOICE_OTHER;
	if (!strncmp(table, "device.", 7))
		return activities & NRT_DEVICE || (config && config->on_fail);
	if (!strcmp(table, "trace.zones"))
		return activities & NRT_SYSTEM;
	return !strcmp(table, "trace.counters") && activities & (NRT_HOST_MEMORY | NRT_CPU_UTIL);
}

/* The core and event of a zone that is a call of the runtime; false: it is another. */
static bool call_of(uint32_t name, uint32_t *out_core, enum nrt_event *out_event)
{
	for (uint32_t event = 0; name && event < NRT_EVENT_COUNT; event++)
		for (uint32_t core = 0; core < NRT_CORES; core++)
			if (kymo__load_relaxed(&call_ids[event][core]) == name) {
				*out_core = core;
				*out_event = (enum nrt_event)event;
				return true;
			}
	return false;
}

static enum nrt_event event_of_kind(uint32_t kind)
{
	return kind == KYMO_DEVICE_EXECUTION ? NRT_EVENT_EXECUTION
	       : kind == KYMO_DEVICE_KERNEL  ? NRT_EVENT_KERNEL
					     : NRT_EVENT_COPY;
}

/* Of those that pass, the newest so many for each core. */
static bool within_limit(struct choice *choice, const struct nrt_inspect_config *config,
			 uint32_t core, bool writes)
{
	if (!writes)
		choice->seen[core]++;
	else
		choice->written[core]++;
	return !writes || choice->seen[core] - choice->written[core] < config->events_per_core;
}

static bool passes(struct choice *choice, uint32_t core, enum nrt_event event, bool writes)
{
	const struct nrt_inspect_config *config = choice->selection->config;

	if (!config)
		return true;
	return config->cores >> core & 1 && config->events >> event & 1 &&
	       within_limit(choice, config, core, writes);
}

/* A model's executions that are its warm-up do not count. */
static bool is_warm(const struct nrt_selection *selection, const struct kymo_captured *row)
{
	const struct nrt_known *known;
	bool warm;

	if (!selection->config || !selection->config->warmup)
		return true;
	nrt_lock();
	known = nrt_all_known();
	while (known && known->name_id != row->model)
		known = known->next;
	warm = known && known->inspect_from && row->ticks >= known->inspect_from;
	nrt_unlock();
	return warm;
}

static bool wants_row(void *context, const struct kymo_captured *row, bool writes)
{
	struct choice *choice = context;
	const struct nrt_selection *selection = choice->selection;
	enum nrt_event event;
	uint32_t core;

	if (choice->table == CHOICE_ZONES)
		return call_of(row->name, &core, &event) && passes(choice, core, event, writes);
	if (choice->table == CHOICE_OTHER)
		return true;
	core = (uint32_t)row->core;
	if (core >= NRT_CORES || (selection->core != NRT_CORES && core != selection->core) ||
	    (selection->model && selection->model->name_id != row->model))
		return false;
	return is_warm(selection, row) && passes(choice, core, event_of_kind(row->kind), writes);
}

/* ---- files ---- */

/* The ids that rows have for models. */
static void name_models(void)
{
	nrt_lock();
	for (struct nrt_known *known = nrt_all_known(); known; known = known->next)
		known->name_id = kymo_name_full(known->name, strlen(known->name), NULL, 0, 0,
						KYMO_SOURCE_DEVICE, 0);
	nrt_unlock();
}

NRT_STATUS nrt_capture_save(const char *path, const struct nrt_selection *selection)
{
	struct choice choice = { .selection = selection };
	struct kymo_capture capture = { .bytes = sizeof(capture),
					.from_ticks = selection->from_ticks,
					.wants_table = wants_table,
					.wants_row = wants_row,
					.context = &choice };
	struct kymo_error err = { 0 };

	kymo_device_flush();
	name_models();
	if (!kymo_capture_write(path, &capture, &err))
		return NRT_SUCCESS;
	nrt_say("%s", err.text);
	return err.code == ENOMEM ? NRT_RESOURCE : NRT_FAILURE;
}

/* And those above it. */
static int make_directories(char *path)
{
	struct stat info;

	for (char *at = path + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(path, 0777) && errno != EEXIST)
			return -errno;
		*at = '/';
	}
	if (mkdir(path, 0777) && errno != EEXIST)
		return -errno;
	return stat(path, &info) ? -errno : S_ISDIR(info.st_mode) ? 0 : -ENOTDIR;
}

static NRT_STATUS nrt_capture_make_directory(const char *directory)
{
	char path[NRT_PATH_BYTES];
	int rc = -ENAMETOOLONG;

	if (strlen(directory) < sizeof(path) - 1) {
		strcpy(path, directory);
		rc = make_directories(path);
	}
	if (rc)
		nrt_say("cannot create the directory %s: %s; set another output directory",
			directory, strerror(-rc));
	return rc ? NRT_FAILURE : NRT_SUCCESS;
}

/*
 * Takes a number that no file has. Several processes may save into one directory: an empty file
 * whose name is hidden holds the number until the file itself is there.
 */
static int nrt_capture_take_number(const char *directory, const char *stem, unsigned number,
				   char *path, char *hold)
{
	int length = snprintf(hold, NRT_PATH_BYTES, "%s/.%s_%u.taken", directory, stem, number);
	int fd;

	if (length < 0 || (unsigned)length >= NRT_PATH_BYTES)
		return -ENAMETOOLONG;
	snprintf(path, NRT_PATH_BYTES, "%s/%s_%u.kymo", directory, stem, number);
	fd = open(hold, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	close(fd);
	if (access(path, F_OK))
		return 0;
	unlink(hold);
	return -EEXIST;
}

NRT_STATUS nrt_capture_save_in(const char *directory, const char *stem,
			       const struct nrt_selection *selection)
{
	char path[NRT_PATH_BYTES], hold[NRT_PATH_BYTES];
	NRT_STATUS status;
	int rc = -EEXIST;

	directory = directory ? directory : OUTPUT_DIR;
	status = nrt_capture_make_directory(directory);
	for (unsigned number = 1; status == NRT_SUCCESS && rc == -EEXIST && number < NUMBERS_MOST;
	     number++)
		rc = nrt_capture_take_number(directory, stem, number, path, hold);
	if (status != NRT_SUCCESS)
		return status;
	if (rc) {
		nrt_say("cannot write into %s: %s; set another output directory", directory,
			strerror(-rc));
		return NRT_FAILURE;
	}
	status = nrt_capture_save(path, selection);
	unlink(hold);
	return status;
}
