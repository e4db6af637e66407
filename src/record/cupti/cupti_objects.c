/* Devices, and the queues of the recording: one for each context and stream. */
#include <stdio.h>

#include <kymo/atomic.h>

#include "record/cupti/cupti.h"

#define QUEUES KYMO_DEVICE_QUEUES_MAX
#define FILLING 1u
#define READY 2u
#define LOOKS 10000 /* another thread fills it, or did when this child was forked */

static void objects_flush(void *context)
{
	(void)context;
	if (kymo__load_acquire(&cupti_state) == CUPTI_ARMED)
		cupti_api.cuptiActivityFlushAll(0);
}

static const struct kymo_device_adapter adapter = {
	sizeof(adapter), "cuda", NULL, cupti_clock_now, objects_flush,
};

static uint32_t device_states[KYMO_DEVICES_MAX]; /* atomic */
static uint32_t device_ids[KYMO_DEVICES_MAX];
static uint32_t first_context[KYMO_DEVICES_MAX]; /* atomic; 0: none yet */
static struct cupti_queue queues[QUEUES];
static uint32_t queue_states[QUEUES]; /* atomic */

/* 1: this thread fills it, 0: it is ready; -1: never became ready. */
static int objects_claim(uint32_t *state)
{
	uint32_t none = 0;

	if (kymo__load_acquire(state) == READY)
		return 0;
	if (kymo__cas_acquire(state, &none, FILLING))
		return 1;
	for (int i = 0; i < LOOKS; i++)
		if (kymo__load_acquire(state) == READY)
			return 0;
	return -1;
}

uint32_t cupti_device(uint32_t device)
{
	char name[32];
	int mine;

	if (device >= KYMO_DEVICES_MAX)
		return 0;
	mine = objects_claim(&device_states[device]);
	if (mine > 0) {
		snprintf(name, sizeof(name), "GPU %u", device);
		device_ids[device] = kymo_device_add(&adapter, device, name);
		kymo__store_release(&device_states[device], READY);
	}
	return mine < 0 ? 0 : device_ids[device];
}

/* Streams are numbered by context: those of a device's first context have short names, as in
   imported traces. */
static void queue_fill(struct cupti_queue *queue, uint32_t device, uint32_t context,
		       uint32_t stream)
{
	uint32_t first = 0;
	char name[64];

	queue->device = cupti_device(device);
	queue->number = device;
	if (device < KYMO_DEVICES_MAX &&
	    !kymo__cas_relaxed(&first_context[device], &first, context))
		first = kymo__load_relaxed(&first_context[device]);
	else
		first = context;
	if (first == context)
		snprintf(name, sizeof(name), "stream %u", stream);
	else
		snprintf(name, sizeof(name), "context %u stream %u", context, stream);
	queue->id = kymo_device_queue_add(queue->device, name, stream);
}

static uint64_t queue_key(uint32_t device, uint32_t context, uint32_t stream)
{
	return (uint64_t)(device & 0xffu) << 56 | (uint64_t)(context & 0xffffffu) << 32 | stream;
}

struct cupti_queue *cupti_queue(uint32_t device, uint32_t context, uint32_t stream)
{
	uint64_t key = queue_key(device, context, stream) + 1; /* not 0 */

	for (uint32_t i = 0; i < QUEUES; i++) {
		int mine = objects_claim(&queue_states[i]);

		if (mine > 0) {
			queue_fill(&queues[i], device, context, stream);
			queues[i].key = key;
			kymo__store_release(&queue_states[i], READY);
		}
		if (mine >= 0 && queues[i].key == key)
			return &queues[i];
	}
	return NULL;
}

struct cupti_queue *cupti_queue_of_context(uint32_t context, uint32_t stream)
{
	struct cupti_queue *of_context = NULL;

	for (uint32_t i = 0; i < QUEUES && kymo__load_acquire(&queue_states[i]) == READY; i++) {
		uint64_t key = queues[i].key - 1;

		if ((key >> 32 & 0xffffffu) != (context & 0xffffffu))
			continue;
		if ((uint32_t)key == stream)
			return &queues[i];
		of_context = of_context ? of_context : &queues[i];
	}
	return of_context;
}
