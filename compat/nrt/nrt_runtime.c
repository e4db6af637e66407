/* Models: loaded, run and unloaded. What is recorded of that is nrt_capture.c's. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kymo/device.h>

#include "nrt_inside.h"

enum life { LIFE_NONE, LIFE_OPEN, LIFE_CLOSED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t loading =
	PTHREAD_MUTEX_INITIALIZER; /* compiling takes long: no model waits for it */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER; /* a model has stopped running */
/* Only one model at a time runs on a core. */
static pthread_mutex_t cores[NRT_CORES] = { [0 ... NRT_CORES - 1] = PTHREAD_MUTEX_INITIALIZER };
static enum life life;
static struct nrt_model *models;
static struct nrt_known *all_known;

void nrt_lock(void)
{
	pthread_mutex_lock(&lock);
}

void nrt_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void nrt_control(void)
{
	pthread_mutex_lock(&control);
}

void nrt_control_end(void)
{
	pthread_mutex_unlock(&control);
}

bool nrt_control_soon(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	return !pthread_mutex_timedlock(&control, &until);
}

/* The child has no device and no models: nothing of the parent's may be touched, so it is left
   behind. */
static void nrt_runtime_after_fork_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&control, NULL);
	pthread_mutex_init(&loading, NULL);
	pthread_cond_init(&idle, NULL);
	for (uint32_t i = 0; i < NRT_CORES; i++)
		pthread_mutex_init(&cores[i], NULL);
	life = LIFE_NONE;
	models = NULL;
	nrt_profiles_forget();
	nrt_inspect_forget();
	for (struct nrt_known *known = all_known; known; known = known->next)
		known->loaded = false;
}

__attribute__((constructor)) static void nrt_runtime_on_load(void)
{
	pthread_atfork(NULL, NULL, nrt_runtime_after_fork_in_child);
}

/* ---- small things ---- */

void nrt_say(const char *format, ...)
{
	char line[3072] = "kymo: ";
	size_t bytes;
	va_list words;

	va_start(words, format);
	vsnprintf(line + 6, sizeof(line) - 7, format, words);
	va_end(words);
	bytes = strlen(line);
	line[bytes++] = '\n';
	if (write(STDERR_FILENO, line, bytes) < 0)
		return; /* stderr is gone */
}

char *nrt_copy(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = malloc(bytes);

	if (copy)
		memcpy(copy, text, bytes);
	return copy;
}

/* One list: what a status is called. */
const char *nrt_get_status_as_str(NRT_STATUS status)
{
#define STATUS(name) \
	case name: return #name
	switch (status) {
		STATUS(NRT_SUCCESS);
		STATUS(NRT_FAILURE);
		STATUS(NRT_INVALID);
		STATUS(NRT_INVALID_HANDLE);
		STATUS(NRT_RESOURCE);
		STATUS(NRT_TIMEOUT);
		STATUS(NRT_HW_ERROR);
		STATUS(NRT_QUEUE_FULL);
		STATUS(NRT_UNINITIALIZED);
		STATUS(NRT_CLOSED);
	}
#undef STATUS
	return "NRT_UNKNOWN";
}

static NRT_STATUS status_of_life(void)
{
	return life == LIFE_OPEN     ? NRT_SUCCESS
	       : life == LIFE_CLOSED ? NRT_CLOSED
				     : NRT_UNINITIALIZED;
}

/* ---- names ---- */

struct nrt_known *nrt_all_known(void)
{
	return all_known;
}

static struct nrt_known *find_known(const char *name)
{
	struct nrt_known *known = all_known;

	while (known && strcmp(known->name, name) != 0)
		known = known->next;
	return known;
}

/* The entry of that name, or of NAME_2, NAME_3, … while models of the name are loaded. NULL: no
   memory. */
static struct nrt_known *take_known(const char *wanted)
{
	char name[NRT_NAME_BYTES];
	struct nrt_known *known;

	memcpy(name, wanted, sizeof(name));
	for (unsigned i = 2; (known = find_known(name)) && known->loaded; i++)
		snprintf(name, sizeof(name), "%.*s_%u", (int)sizeof(name) - 13, wanted, i);
	if (!known) {
		known = calloc(1, sizeof(*known));
		if (!known)
			return NULL;
		memcpy(known->name, name, sizeof(name));
		known->id = kymo_device_model_add(name);
		known->next = all_known;
		all_known = known;
	}
	known->loaded = true;
	return known;
}

/* ---- life ---- */

NRT_STATUS nrt_init(nrt_framework_type_t framework, const char *fw_version, const char *fal_version)
{
	bool begins;

	(void)fw_version;
	(void)fal_version;
	if (framework <= NRT_FRAMEWORK_TYPE_INVALID || framework > NRT_FRAMEWORK_TYPE_MXNET)
		return NRT_INVALID;
	nrt_lock();
	begins = life != LIFE_OPEN && nrt_environment_enables() && !nrt_inspect_now();
	life = LIFE_OPEN;
	nrt_unlock();
	/* What it cannot do it has said; that is no reason not to run. */
	if (begins)
		nrt_inspect_begin_at_init();
	return NRT_SUCCESS;
}

/* With the lock. Removes the model from the list at once, and waits until no thread runs it. */
static void drop_model(struct nrt_model *model)
{
	struct nrt_model **at = &models;

	while (*at != model)
		at = &(*at)->next;
	*at = model->next;
	while (model->running)
		pthread_cond_wait(&idle, &lock);
	model->backend->unload(model->loaded);
	model->known->loaded = false;
	free(model);
}

void nrt_close(void)
{
	nrt_lock();
	if (life == LIFE_OPEN)
		life = LIFE_CLOSED;
	while (models)
		drop_model(models);
	nrt_unlock();
}

/* ---- loading ---- */

struct nrt_model *nrt_find_model(const nrt_model_t *wanted)
{
	struct nrt_model *model = models;

	while (model && model != wanted)
		model = model->next;
	return model;
}

/* OpenCL where there is a device for it. */
static const struct nrt_backend *choose_backend(const struct nrt_text *text)
{
	static bool said;
	const char *why = NULL;

	if (text->is_fake)
		return &nrt_standin;
	if (nrt_opencl.open(&why) == NRT_SUCCESS)
		return &nrt_opencl;
	if (!said)
		nrt_say("%s: %s runs on a stand-in on the host, which computes nothing; install an "
			"OpenCL driver, for example pocl-opencl-icd",
			why, text->name);
	said = true;
	return &nrt_standin;
}

/* Gives it a name and makes it known; unless the runtime was closed while it was being compiled. */
static NRT_STATUS nrt_runtime_publish(struct nrt_model *model)
{
	NRT_STATUS status;

	nrt_lock();
	status = status_of_life();
	if (status == NRT_SUCCESS) {
		model->known = take_known(model->text.name);
		status = model->known ? NRT_SUCCESS : NRT_RESOURCE;
	}
	if (status == NRT_SUCCESS) {
		model->next = models;
		models = model;
	}
	nrt_unlock();
	return status;
}

static NRT_STATUS load_into(struct nrt_model *model, const char *text, size_t bytes)
{
	NRT_STATUS status;

	pthread_mutex_lock(&loading);
	model->backend = choose_backend(&model->text);
	status = model->backend->load(text, bytes, &model->text, model->core, &model->loaded);
	pthread_mutex_unlock(&loading);
	if (status != NRT_SUCCESS)
		return status;
	status = nrt_runtime_publish(model);
	if (status != NRT_SUCCESS)
		model->backend->unload(model->loaded);
	return status;
}

static NRT_STATUS load_model(const char *text, size_t bytes, uint32_t core, nrt_model_t **out)
{
	struct nrt_model *model = calloc(1, sizeof(*model));
	const char *wrong;
	NRT_STATUS status;

	if (!model)
		return NRT_RESOURCE;
	wrong = nrt_text_parse(text, bytes, &model->text);
	if (wrong)
		nrt_say("cannot load the model: %s", wrong);
	model->core = core;
	status = wrong ? NRT_INVALID : load_into(model, text, bytes);
	if (status == NRT_SUCCESS)
		*out = model;
	else
		free(model);
	return status;
}

static bool core_is_there(int32_t vnc, int32_t vnc_count)
{
	int32_t first = vnc < 0 ? 0 : vnc, count = vnc_count < 0 ? 1 : vnc_count;

	return vnc >= -1 && vnc_count >= -1 && count && first < (int32_t)NRT_CORES &&
	       count <= (int32_t)NRT_CORES - first;
}

NRT_STATUS nrt_load(const void *neff_bytes, size_t size, int32_t vnc, int32_t vnc_count,
		    nrt_model_t **model)
{
	struct kymo_zone zone = { 0 };
	NRT_STATUS status;
	uint32_t core = vnc > 0 ? (uint32_t)vnc : 0;

	if (!model)
		return NRT_INVALID;
	*model = NULL;
	if (!neff_bytes || !size || !core_is_there(vnc, vnc_count))
		return NRT_INVALID;
	nrt_lock();
	status = status_of_life();
	if (status == NRT_SUCCESS)
		zone = nrt_capture_call(NRT_EVENT_LOAD, core);
	nrt_unlock();
	if (status == NRT_SUCCESS)
		status = load_model(neff_bytes, size, core, model);
	kymo_zone_end(&zone);
	return status;
}

NRT_STATUS nrt_unload(nrt_model_t *model)
{
	struct nrt_model *found;
	struct kymo_zone zone;

	if (!model)
		return NRT_INVALID;
	nrt_lock();
	found = nrt_find_model(model);
	if (found) {
		zone = nrt_capture_call(NRT_EVENT_UNLOAD, found->core);
		drop_model(found);
		kymo_zone_end(&zone);
	}
	nrt_unlock();
	return found ? NRT_SUCCESS : NRT_INVALID;
}

/* ---- running ---- */

/* With the core's lock, and the model held. */
static NRT_STATUS nrt_runtime_run(struct nrt_model *model, bool wanted)
{
	struct nrt_times times[NRT_OPERATIONS], whole;
	NRT_STATUS status;

	memset(times, 0, model->text.count * sizeof(times[0]));
	whole.queued = whole.submit = whole.start = kymo_ticks();
	status = model->backend->run(model->loaded, &model->text, model->core, times);
	whole.end = kymo_ticks();
	if (model->text.fail_every && ++model->executions % model->text.fail_every == 0)
		status = NRT_HW_ERROR;
	if (wanted)
		nrt_capture_execution(model, &whole, times, status);
	return status;
}

/* With the lock: who wants to know what the device does in this execution. */
static bool nrt_runtime_is_wanted(struct nrt_model *model)
{
	bool wanted = nrt_inspect_wants(model->known, model->core);

	if (nrt_continuous_runs()) {
		nrt_continuous_ran(model->core, model->known);
		wanted = true;
	}
	return nrt_is_profiled(model->known) || wanted || nrt_capture_by_others();
}

NRT_STATUS nrt_execute(nrt_model_t *handle, const nrt_tensor_set_t *input_set,
		       nrt_tensor_set_t *output_set)
{
	const struct nrt_known *known;
	struct nrt_model *model;
	struct kymo_zone zone;
	NRT_STATUS status;
	bool wanted = false, failed;

	if (!handle || input_set || output_set)
		return NRT_INVALID;
	nrt_lock();
	model = nrt_find_model(handle);
	if (model) {
		model->running++;
		wanted = nrt_runtime_is_wanted(model);
		zone = nrt_capture_call(NRT_EVENT_EXECUTE, model->core);
	}
	status = model ? NRT_SUCCESS : status_of_life();
	nrt_unlock();
	if (!model)
		return status == NRT_SUCCESS ? NRT_INVALID : status;
	pthread_mutex_lock(&cores[model->core]);
	status = nrt_runtime_run(model, wanted);
	pthread_mutex_unlock(&cores[model->core]);
	kymo_zone_end(&zone);
	nrt_lock();
	failed = nrt_inspect_ran(status);
	known = model->known; /* the model may be gone in a moment */
	model->running--;
	pthread_cond_broadcast(&idle);
	nrt_unlock();
	if (failed)
		nrt_inspect_failed(known);
	return status;
}
