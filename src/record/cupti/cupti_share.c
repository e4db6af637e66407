/*
 * Other users of CUPTI in the program, above all torch.profiler. Before 13.4 CUPTI has one
 * subscriber and one pair of functions for buffers. The other user goes first:
 *
 * - It subscribes while kymo is subscribed: it gets kymo's handle, and callbacks that it has asked
 *   for are passed on to it. Otherwise torch.profiler would record no CUDA work.
 * - It registers functions for buffers: kymo takes back its own buffers and collects nothing, until
 *   the other has disabled all its kinds of records and has flushed its buffers. The time between
 *   is a row of kymo.gaps with the number of launches in it.
 */
#include <string.h>

#include <kymo/atomic.h>

#include "record/cupti/cupti.h"

#define KINDS_MOST 128u

static struct {
	cupti_callback *callback; /* NULL: no other subscriber; atomic */
	void *user;
	uint8_t domains[CUPTI_DOMAIN_COUNT]; /* 1: all of it */
	uint8_t calls[CUPTI_DOMAIN_COUNT][CUPTI_CALLBACKS_MOST];
} other;

static uint8_t other_kinds[KINDS_MOST]; /* that it has enabled; atomic */
static uint32_t other_kind_count; /* atomic */
static bool other_recorded; /* it had enabled some since it registered */
static uint64_t yielded_ticks, yielded_launches;

/* ---- callbacks ------------------------------------------------------------------------------- */

static bool other_wants(uint32_t domain, uint32_t id)
{
	return domain < CUPTI_DOMAIN_COUNT &&
	       (other.domains[domain] || (id < CUPTI_CALLBACKS_MOST && other.calls[domain][id]));
}

void cupti_share_pass_on(uint32_t domain, uint32_t id, const void *data)
{
	cupti_callback *callback = kymo__load_acquire(&other.callback);

	if (KYMO__UNLIKELY(callback != NULL) && other_wants(domain, id))
		callback(other.user, domain, id, data);
}

static void other_leaves(void)
{
	kymo__store_release(&other.callback, NULL);
	memset(other.domains, 0, sizeof(other.domains));
	memset(other.calls, 0, sizeof(other.calls));
}

static bool is_shared(cupti_handle handle)
{
	return handle && handle == cupti_subscriber && kymo__load_acquire(&other.callback);
}

static int hook_subscribe(cupti_handle *out, cupti_callback *callback, void *user)
{
	int rc = cupti_api.cuptiSubscribe(out, callback, user);

	if (rc != CUPTI_MANY_SUBSCRIBERS || !cupti_subscriber || !out || !callback ||
	    kymo__load_acquire(&other.callback))
		return rc;
	other.user = user;
	kymo__store_release(&other.callback, callback);
	*out = cupti_subscriber;
	return CUPTI_OK;
}

/* Ours stays subscribed; only what the other alone had asked for is disabled. */
static int hook_unsubscribe(cupti_handle handle)
{
	if (!is_shared(handle))
		return cupti_api.cuptiUnsubscribe(handle);
	for (uint32_t domain = 1; domain < CUPTI_DOMAIN_COUNT; domain++)
		for (uint32_t id = 1; id < CUPTI_CALLBACKS_MOST; id++)
			if (other_wants(domain, id) && !cupti_calls_wants(domain, id) &&
			    cupti_api.cuptiEnableCallback(0, handle, domain, id))
				break;
	other_leaves();
	return CUPTI_OK;
}

static int hook_enable_callback(uint32_t enable, cupti_handle handle, uint32_t domain, uint32_t id)
{
	if (!is_shared(handle))
		return cupti_api.cuptiEnableCallback(enable, handle, domain, id);
	if (domain < CUPTI_DOMAIN_COUNT && id < CUPTI_CALLBACKS_MOST)
		other.calls[domain][id] = enable != 0;
	if (!enable && cupti_calls_wants(domain, id))
		return CUPTI_OK;
	return cupti_api.cuptiEnableCallback(enable, handle, domain, id);
}

static int hook_enable_domain(uint32_t enable, cupti_handle handle, uint32_t domain)
{
	int rc;

	if (!is_shared(handle))
		return cupti_api.cuptiEnableDomain(enable, handle, domain);
	if (domain < CUPTI_DOMAIN_COUNT)
		other.domains[domain] = enable != 0;
	rc = cupti_api.cuptiEnableDomain(enable, handle, domain);
	if (!enable)
		cupti_calls_enable(handle); /* ours again */
	return rc;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void share_yield(void)
{
	uint32_t armed = CUPTI_ARMED;

	if (cupti_several || kymo__load_acquire(&cupti_state) != CUPTI_ARMED)
		return;
	cupti_api.cuptiActivityFlushAll(CUPTI_FLUSH_FORCED); /* our buffers come back to us */
	cupti_activities_end();
	other_recorded = false;
	yielded_ticks = kymo_ticks();
	yielded_launches = kymo__load_relaxed(&cupti_launch_count);
	kymo__cas_acq_rel(&cupti_state, &armed, CUPTI_YIELDED);
}

/* Only after the other has flushed: its buffers must go to it. */
static void share_return(void)
{
	uint32_t yielded = CUPTI_YIELDED;

	if (!other_recorded || kymo__load_relaxed(&other_kind_count) ||
	    !kymo__cas_acq_rel(&cupti_state, &yielded, CUPTI_ARMED))
		return;
	cupti_gap("another user of CUPTI had the buffers", yielded_ticks, kymo_ticks(),
		  kymo__load_relaxed(&cupti_launch_count) - yielded_launches);
	cupti_activities_begin();
}

static int hook_register(cupti_buffer_request *request, cupti_buffer_complete *complete)
{
	if (request != cupti_on_request)
		share_yield();
	return cupti_api.cuptiActivityRegisterCallbacks(request, complete);
}

static int hook_enable(uint32_t kind)
{
	int rc = cupti_api.cuptiActivityEnable(kind);

	if (!rc && kind < KINDS_MOST && !kymo__exchange_acq_rel(&other_kinds[kind], 1)) {
		kymo__fetch_add_relaxed(&other_kind_count, 1);
		other_recorded = true;
	}
	return rc;
}

static int hook_disable(uint32_t kind)
{
	if (kind < KINDS_MOST && kymo__exchange_acq_rel(&other_kinds[kind], 0))
		kymo__fetch_sub_relaxed(&other_kind_count, 1);
	/* The other may tidy up kinds that kymo collects. */
	if (!cupti_several && kymo__load_acquire(&cupti_state) == CUPTI_ARMED &&
	    cupti_collects(kind))
		return CUPTI_OK;
	return cupti_api.cuptiActivityDisable(kind);
}

static int hook_flush(uint32_t flag)
{
	int rc = cupti_api.cuptiActivityFlushAll(flag);

	if (kymo__load_acquire(&cupti_state) == CUPTI_YIELDED)
		share_return();
	return rc;
}

/* CUPTI is torn down for all; nothing of it may be called after that. */
static int hook_finalize(void)
{
	int rc;

	cupti_mark("another user of CUPTI has ended it: kymo records no more CUDA work");
	share_yield();
	cupti_stop();
	rc = cupti_api.cuptiFinalize ? cupti_api.cuptiFinalize() : CUPTI_OK;
	return rc;
}

void cupti_share_forget(void)
{
	other_leaves();
}

const struct cupti_hook cupti_hooks[] = {
	{ "cuptiSubscribe", (void *)hook_subscribe },
	{ "cuptiUnsubscribe", (void *)hook_unsubscribe },
	{ "cuptiEnableCallback", (void *)hook_enable_callback },
	{ "cuptiEnableDomain", (void *)hook_enable_domain },
	{ "cuptiActivityRegisterCallbacks", (void *)hook_register },
	{ "cuptiActivityEnable", (void *)hook_enable },
	{ "cuptiActivityDisable", (void *)hook_disable },
	{ "cuptiActivityFlushAll", (void *)hook_flush },
	{ "cuptiFinalize", (void *)hook_finalize },
	{ NULL, NULL },
};
