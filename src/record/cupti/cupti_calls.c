/*
 * Calls of the program. CUPTI calls back on entry and exit of those that are enabled: launches,
 * copies, graphs and waits, of the runtime and of the driver. A call of the runtime contains calls
 * of the driver: only the outer one counts.
 */
#include <string.h>

#include <kymo/atomic.h>

#include "record/cupti/cupti.h"

enum call_class {
	CALL_NONE,
	CALL_LAUNCH,
	CALL_COPY,
	CALL_COPY_WAITS, /* a copy whose call returns when it is done */
	CALL_WAIT,
};

/* By domain (driver, runtime) and id. */
static uint8_t classes[2][CUPTI_CALLBACKS_MOST]; /* enum call_class; complete before callbacks */
static uint32_t call_names[2][CUPTI_CALLBACKS_MOST]; /* atomic; 0: not known yet */

uint64_t cupti_launch_count;
static uint64_t launch_cost = UINT64_MAX; /* atomic */
static uint64_t failed_calls; /* atomic */

/* The outermost call of this thread. */
static __thread struct {
	uint32_t correlation; /* 0: none */
	uint32_t domain, id;
	struct kymo_zone zone; /* of a wait */
} outer;

/* ---- which calls ----------------------------------------------------------------------------- */

static bool calls_begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static bool calls_begins_with_any(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (calls_begins(name, *words))
			return true;
	return false;
}

static enum call_class calls_class_of(const char *name)
{
	static const char *const launches[] = { "cudaLaunchKernel", "cudaLaunchCooperative",
						"cuLaunchKernel",   "cuLaunchCooperative",
						"cuLaunchGrid",	    "cudaGraphLaunch",
						"cuGraphLaunch",    NULL };
	static const char *const copies[] = { "cudaMemcpy", "cudaMemset",      "cuMemcpy",
					      "cuMemsetD",  "cudaMemPrefetch", "cuMemPrefetch",
					      NULL };
	static const char *const waits[] = { "cudaDeviceSynchronize", "cudaStreamSynchronize",
					     "cudaEventSynchronize",  "cudaThreadSynchronize",
					     "cuCtxSynchronize",      "cuStreamSynchronize",
					     "cuEventSynchronize",    NULL };

	name += calls_begins(name, "__") ? 2 : 0; /* __cudaLaunchKernel */
	if (calls_begins_with_any(name, launches))
		return CALL_LAUNCH;
	if (calls_begins_with_any(name, waits))
		return CALL_WAIT;
	if (!calls_begins_with_any(name, copies))
		return CALL_NONE;
	if (strstr(name, "Async") || strstr(name, "Batch") || strstr(name, "emset") ||
	    strstr(name, "Prefetch") || strstr(name, "DtoD"))
		return CALL_COPY;
	return CALL_COPY_WAITS;
}

static void calls_enable_domain(cupti_handle subscriber, uint32_t domain)
{
	for (uint32_t id = 1; id < CUPTI_CALLBACKS_MOST; id++) {
		const char *name = NULL;

		if (cupti_api.cuptiGetCallbackName(domain, id, &name) || !name)
			break;
		classes[domain - 1][id] = (uint8_t)calls_class_of(name);
		if (classes[domain - 1][id])
			cupti_api.cuptiEnableCallback(1, subscriber, domain, id);
	}
}

void cupti_calls_enable(cupti_handle subscriber)
{
	calls_enable_domain(subscriber, CUPTI_DOMAIN_DRIVER);
	calls_enable_domain(subscriber, CUPTI_DOMAIN_RUNTIME);
	cupti_api.cuptiEnableCallback(1, subscriber, CUPTI_DOMAIN_RESOURCE,
				      CUPTI_RESOURCE_MODULE_UNLOAD);
}

bool cupti_calls_wants(uint32_t domain, uint32_t id)
{
	if (domain == CUPTI_DOMAIN_RESOURCE)
		return id == CUPTI_RESOURCE_MODULE_UNLOAD;
	return (domain == CUPTI_DOMAIN_DRIVER || domain == CUPTI_DOMAIN_RUNTIME) &&
	       id < CUPTI_CALLBACKS_MOST && classes[domain - 1][id];
}

/* ---- one call -------------------------------------------------------------------------------- */

static uint32_t call_name(uint32_t domain, uint32_t id, const char *function)
{
	uint32_t *name = &call_names[domain - 1][id];
	uint32_t known = kymo__load_relaxed(name);

	if (KYMO__LIKELY(known != 0) || !function)
		return known;
	known = kymo_name_full(function, strlen(function), NULL, 0, 0, KYMO_SOURCE_DEVICE, 0);
	kymo__store_relaxed(name, known);
	return known;
}

/* Returns its time. */
static uint64_t calls_note_launch(const struct cupti_call_data *data, uint32_t domain, uint32_t id,
				  enum call_class class)
{
	struct cupti_launch *launch = cupti_launch_begin(data->correlation);

	kymo_device_launch(&launch->launch);
	launch->name = class == CALL_LAUNCH ? cupti_kernel_name(data->symbol) : 0;
	launch->call = call_name(domain, id, data->function);
	launch->flags = class == CALL_COPY_WAITS ? KYMO_DEVICE_BLOCKING : 0;
	cupti_launch_publish(launch, data->correlation);
	return launch->launch.ticks;
}

static void launch_costs(uint64_t ticks)
{
	uint64_t least = kymo__load_relaxed(&launch_cost);

	while (ticks < least && !kymo__cas_weak_relaxed(&launch_cost, &least, ticks))
		;
}

uint64_t cupti_launch_cost(void)
{
	uint64_t ticks = kymo__load_relaxed(&launch_cost);

	return ticks == UINT64_MAX ? 0 : ticks;
}

/* An exit that did not come: callbacks were off meanwhile. */
static void calls_forget_outer(void)
{
	if (outer.zone.lane)
		kymo_zone_end(&outer.zone);
	memset(&outer, 0, sizeof(outer));
}

static void calls_enter(uint32_t domain, uint32_t id, const struct cupti_call_data *data)
{
	enum call_class class = (enum call_class)classes[domain - 1][id];
	uint64_t count, begun;

	if (outer.correlation && domain == CUPTI_DOMAIN_DRIVER &&
	    outer.domain == CUPTI_DOMAIN_RUNTIME) {
		/* Part of a call of the runtime: its record may have either number. */
		if (outer.correlation != data->correlation && class < CALL_WAIT)
			calls_note_launch(data, domain, id, class);
		return;
	}
	if (KYMO__UNLIKELY(outer.correlation != 0))
		calls_forget_outer();
	outer.correlation = data->correlation;
	outer.domain = domain;
	outer.id = id;
	begun = calls_note_launch(data, domain, id, class);
	if (class == CALL_WAIT || class == CALL_COPY_WAITS) {
		outer.zone = kymo_zone_begin_id(call_name(domain, id, data->function));
		return;
	}
	count = kymo__add_fetch_relaxed(&cupti_launch_count, 1);
	if (KYMO__UNLIKELY(count % 64 == 0))
		launch_costs(kymo_ticks() - begun);
}

/* Marked each time the number of failures has doubled. 600 is "not ready": no failure. */
static void calls_failed(const struct cupti_call_data *data, int result)
{
	uint64_t count = kymo__add_fetch_relaxed(&failed_calls, 1);

	if (!(count & (count - 1)))
		cupti_mark("%s returned error %d (failed calls so far: %llu)",
			   data->function ? data->function : "a call", result,
			   (unsigned long long)count);
}

static void calls_exit(uint32_t domain, uint32_t id, const struct cupti_call_data *data)
{
	uint64_t now = kymo_ticks();
	int result;

	if (outer.correlation != data->correlation || outer.domain != domain || outer.id != id) {
		cupti_launch_returned(data->correlation, now); /* a part of another call */
		return;
	}
	cupti_launch_returned(data->correlation, now);
	if (outer.zone.lane) {
		kymo_zone_end(&outer.zone);
		outer.zone.lane = NULL;
	}
	outer.correlation = 0;
	result = data->result ? *data->result : 0;
	if (KYMO__UNLIKELY(result != 0 && result != 600))
		calls_failed(data, result);
	cupti_poll(now);
}

void cupti_on_call(void *user, uint32_t domain, uint32_t id, const void *data)
{
	const struct cupti_call_data *call = data;

	(void)user;
	if (!kymo__load_acquire(&cupti_state))
		return;
	if (KYMO__LIKELY(cupti_calls_wants(domain, id))) {
		if (domain == CUPTI_DOMAIN_RESOURCE)
			cupti_names_forget();
		else if (kymo_device_enabled() && call->site == 0)
			calls_enter(domain, id, call);
		else if (kymo_device_enabled())
			calls_exit(domain, id, call);
	}
	cupti_share_pass_on(domain, id, data);
}
