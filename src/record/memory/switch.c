/* On and off, and totals. Many threads write every word here, each by one atomic addition. */
#include "record/memory/memory.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include <kymo/atomic.h>

#include "base/schema.h"
#include "record/adapter.h"
#include "record/record.h"

#define WATCHES 16

static struct {
	int64_t live, peak, total, allocs, frees, rows, variance;
	int64_t epoch; /* of the newest peak; see change_site() */
	int64_t peak_variance;
	uint64_t lost, foreign, peak_ticks;
} all __attribute__((aligned(64)));

/* The watches, each with the peak since it began. */
static struct slot {
	uint32_t used, mode; /* used: 0 free, 1 on */
	int64_t base, peak, peak_variance;
	uint64_t peak_ticks;
} slots[WATCHES];
static uint32_t slots_on;
static uint32_t slots_end; /* slots ever used are below it */
static uint32_t readers_of_events; /* watches that may read the last events */

static struct kymo_memory_event events[KYMO_MEMORY_EVENTS];
static uint64_t event_count;

static uint32_t generation = 1, announced;
static uint32_t switching; /* a thread is applying a request from outside */

uint32_t memory_generation(void)
{
	return kymo__load_relaxed(&generation);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* True: a new peak. */
static bool switch_raise_to(int64_t *peak, int64_t live)
{
	int64_t now = kymo__load_relaxed(peak);

	while (live > now)
		if (memory_swap(peak, &now, live))
			return true;
	return false;
}

static void raise_slots(int64_t live, int64_t variance, uint64_t ticks)
{
	uint32_t end = kymo__load_relaxed(&slots_end);

	for (uint32_t i = 0; i < end; i++)
		if (kymo__load_relaxed(&slots[i].used) && switch_raise_to(&slots[i].peak, live)) {
			kymo__store_relaxed(&slots[i].peak_variance, variance);
			kymo__store_relaxed(&slots[i].peak_ticks, ticks);
		}
}

/* Bytes live at the peak cost three words a site: a site saves its bytes at its first change after
   a peak. */
static void change_site(struct memory_node *node, int64_t bytes)
{
	int64_t epoch = kymo__load_relaxed(&all.epoch);
	int64_t seen = kymo__load_relaxed(&node->epoch);

	if (seen != epoch && memory_swap(&node->epoch, &seen, epoch))
		kymo__store_relaxed(&node->at_peak, kymo__load_relaxed(&node->live));
	memory_add(&node->live, bytes);
}

static void raise_peaks(int64_t live, uint64_t ticks)
{
	int64_t variance = kymo__load_relaxed(&all.variance);

	if (switch_raise_to(&all.peak, live)) {
		memory_add(&all.epoch, 1);
		kymo__store_relaxed(&all.peak_variance, variance);
		kymo__store_relaxed(&all.peak_ticks, ticks);
	}
	if (kymo__load_relaxed(&slots_on))
		raise_slots(live, variance, ticks);
}

void memory_count(uint32_t index, int64_t bytes, int64_t variance, int64_t parts, uint64_t ticks)
{
	struct memory_node *node = memory_node(index);
	int64_t live;

	if (variance)
		memory_add(&all.variance, variance);
	if (node)
		change_site(node, bytes);
	live = memory_add(&all.live, bytes);
	if (parts < 0) {
		memory_add(&all.frees, -parts);
		return;
	}
	memory_add(&all.allocs, parts);
	memory_add(&all.rows, 1);
	if (node) {
		memory_add(&node->total, bytes);
		memory_add(&node->count, parts);
	}
	raise_peaks(live, ticks);
}

void memory_passed(int64_t bytes)
{
	if (bytes)
		memory_add(&all.total, bytes);
}

int64_t memory_live_bytes(void)
{
	return kymo__load_relaxed(&all.live);
}

void memory_lost(void)
{
	kymo__fetch_add_relaxed(&all.lost, 1);
}

void memory_foreign(void)
{
	kymo__fetch_add_relaxed(&all.foreign, 1);
}

/* The ticks are stored last, so that an incomplete event is not read. */
void memory_event(uint64_t ticks, const void *ptr, uint64_t size, uint32_t node, uint32_t kind,
		  int64_t live)
{
	struct kymo_memory_event *event;

	if (!kymo__load_relaxed(&readers_of_events))
		return;
	event = &events[kymo__fetch_add_relaxed(&event_count, 1) % KYMO_MEMORY_EVENTS];
	kymo__store_relaxed(&event->ticks, 0);
	event->ptr = (uintptr_t)ptr;
	event->size = size;
	event->live_bytes = live;
	event->node = node;
	event->kind = kind;
	kymo__store_release(&event->ticks, ticks);
}

size_t kymo_memory_events(uint64_t from, struct kymo_memory_event *out, size_t most, uint64_t *end)
{
	uint64_t count = kymo__load_acquire(&event_count);
	size_t taken = 0;

	*end = count;
	if (count > KYMO_MEMORY_EVENTS && from < count - KYMO_MEMORY_EVENTS)
		from = count - KYMO_MEMORY_EVENTS;
	for (; from < count && taken < most; from++) {
		out[taken] = events[from % KYMO_MEMORY_EVENTS];
		taken += out[taken].ticks != 0;
	}
	return taken;
}

/* ---- sites ----------------------------------------------------------------------------------- */

static int64_t at_peak(const struct memory_node *node)
{
	return node->epoch == all.epoch ? node->at_peak : node->live;
}

/* Inserts it among the largest; the smallest is dropped. */
static void keep_largest(struct kymo_memory_site *out, size_t *kept, size_t most,
			 const struct kymo_memory_site *site)
{
	size_t at = *kept < most ? (*kept)++ : most;

	while (at > 0 && (out[at - 1].peak_bytes < site->peak_bytes ||
			  (out[at - 1].peak_bytes == site->peak_bytes &&
			   out[at - 1].total_bytes < site->total_bytes))) {
		if (at < most)
			out[at] = out[at - 1];
		at--;
	}
	if (at < most)
		out[at] = *site;
}

size_t kymo_memory_sites(struct kymo_memory_site *out, size_t most)
{
	size_t kept = 0, count = 0;

	for (uint32_t i = 1; i < memory_node_count(); i++) {
		const struct memory_node *node = memory_node(i);
		struct kymo_memory_site site = { i, node->live, at_peak(node), node->total,
						 node->count / MEMORY_FRACTION };

		if (!node->count)
			continue;
		count++;
		keep_largest(out, &kept, most, &site);
	}
	return count;
}

/* ---- on and off ------------------------------------------------------------------------------ */

static uint64_t how(uint32_t mode)
{
	return (mode == KYMO_MEMORY_SAMPLED ? KYMO_MEMORY_MEAN : 0) | (uint64_t)memory_preloaded
									      << MEMORY_SIZE_BITS;
}

/* The row that marks the start of recording and its mode: once per process. */
static void switch_announce(uint32_t mode)
{
	uint32_t now = memory_generation();

	if (kymo__exchange_relaxed(&announced, now) != now)
		memory_row(SCHEMA_ALLOC_BEGAN, how(mode));
}

void memory_announce(void)
{
	if (kymo__load_relaxed(&announced) != memory_generation())
		switch_announce(kymo__load_relaxed(&memory_mode));
}

static void forget_all(void)
{
	memory_live_clear();
	for (uint32_t i = 1; i < memory_node_count(); i++) {
		struct memory_node *node = memory_node(i);

		node->live = node->at_peak = node->total = node->count = 0;
		node->epoch = 0;
	}
	memset(&all, 0, sizeof(all));
	kymo__fetch_add_relaxed(&generation, 1);
}

/* The child counts from here: inherited blocks are not in its recording. */
static void switch_in_child(void)
{
	switching = 0; /* held by a thread that is not in this child */
	if (!kymo__load_relaxed(&memory_mode))
		return;
	forget_all();
	for (uint32_t i = 0; i < WATCHES; i++)
		slots[i].base = slots[i].peak = slots[i].peak_variance = 0;
	memory_thread.busy = 0;
}

static uint32_t wanted_mode(void)
{
	uint32_t mode = KYMO_MEMORY_OFF;

	for (uint32_t i = 0; i < WATCHES; i++)
		if (kymo__load_acquire(&slots[i].used) && slots[i].mode > mode)
			mode = slots[i].mode;
	return mode;
}

/* The request may change meanwhile; then it is applied again. */
static int settle(void)
{
	uint32_t before = kymo__load_acquire(&memory_mode), mode;
	int rc = 0;

	do {
		mode = wanted_mode();
		if (!before && mode) {
			forget_all();
			switch_announce(mode);
		}
		if (before == KYMO_MEMORY_EXACT && mode == KYMO_MEMORY_SAMPLED)
			memory_live_unfilter();
		kymo__store_release(&memory_mode, mode);
		if (!memory_preloaded && !before != !mode)
			rc = memory_patch(mode != KYMO_MEMORY_OFF);
		if (before && mode && before != mode)
			memory_row(SCHEMA_ALLOC_CHANGED, how(mode));
		if (before && !mode)
			memory_row(SCHEMA_ALLOC_ENDED, 0);
		before = mode;
	} while (mode != wanted_mode());
	return rc;
}

static struct slot *slot_take(uint32_t mode)
{
	uint32_t end = kymo__load_relaxed(&slots_end);

	for (uint32_t i = 0; i < WATCHES; i++) {
		uint32_t none = 0;

		if (!kymo__cas_acq_rel(&slots[i].used, &none, 1))
			continue;
		slots[i].mode = mode;
		while (i >= end && !kymo__cas_weak_relaxed(&slots_end, &end, i + 1))
			;
		return &slots[i];
	}
	return NULL;
}

static int switch_begin(struct kymo_memory_watch *watch, enum kymo_memory_mode mode)
{
	static uint32_t handled;
	struct slot *slot = slot_take(mode);
	int rc;

	memset(watch, 0, sizeof(*watch));
	if (!slot)
		return -EAGAIN;
	if (!memory_real_find()) {
		kymo__store_release(&slot->used, 0);
		return -ENOTSUP;
	}
	if (!kymo__exchange_acq_rel(&handled, 1))
		pthread_atfork(NULL, NULL, switch_in_child);
	rc = settle();
	if (rc) {
		kymo__store_release(&slot->used, 0);
		return rc;
	}
	kymo_memory_read(watch, &watch->base);
	slot->base = slot->peak = watch->base.live_bytes;
	slot->peak_variance = (int64_t)watch->base.variance;
	slot->peak_ticks = kymo__ticks();
	watch->slot = (uint32_t)(slot - slots) + 1;
	watch->mode = mode;
	kymo__fetch_add_relaxed(&slots_on, 1);
	return 0;
}

int kymo_memory_start(struct kymo_memory_watch *watch, enum kymo_memory_mode mode)
{
	int rc = switch_begin(watch, mode);

	if (!rc)
		kymo__fetch_add_relaxed(&readers_of_events, 1);
	return rc;
}

static void switch_end(struct kymo_memory_watch *watch)
{
	kymo__fetch_sub_relaxed(&slots_on, 1);
	kymo__store_release(&slots[watch->slot - 1].used, 0);
	watch->slot = 0;
	settle();
}

void kymo_memory_stop(struct kymo_memory_watch *watch)
{
	if (!watch->slot)
		return;
	kymo__fetch_sub_relaxed(&readers_of_events, 1);
	switch_end(watch);
}

void kymo_memory_read(const struct kymo_memory_watch *watch, struct kymo_memory_stats *out)
{
	const struct slot *slot = watch->slot ? &slots[watch->slot - 1] : NULL;

	memory_tell_passed();
	memset(out, 0, sizeof(*out));
	out->live_bytes = all.live - watch->base.live_bytes;
	out->total_bytes = all.total - watch->base.total_bytes;
	out->allocs = all.allocs / MEMORY_FRACTION - watch->base.allocs;
	out->frees = all.frees / MEMORY_FRACTION - watch->base.frees;
	out->rows = all.rows - watch->base.rows;
	out->variance = (double)all.variance;
	out->lost = all.lost - watch->base.lost;
	out->foreign = all.foreign - watch->base.foreign;
	out->mode = memory_mode;
	out->preloaded = memory_preloaded;
	out->peak_bytes = slot ? slot->peak - slot->base : all.peak;
	out->peak_variance = (double)(slot ? slot->peak_variance : all.peak_variance);
	out->peak_ticks = slot ? slot->peak_ticks : all.peak_ticks;
}

void kymo_memory_refresh(void)
{
	if (!memory_preloaded && kymo__load_relaxed(&memory_mode))
		memory_patch(true);
}

/* ---- from outside ---------------------------------------------------------------------------- */

/* The watch of `kymo run --memory` and `kymo config memory=on`. */
static struct kymo_memory_watch outside;

static uint32_t wanted_now(void)
{
	return kymo__memory_wanted(kymo__is_on(KYMO_ON_ALLOC | KYMO_ON_ALLOC_EXACT));
}

/* The watch continues with all its data: blocks recorded in one mode are found when freed in the
   other. */
static void change_mode(enum kymo_memory_mode mode)
{
	outside.mode = mode;
	slots[outside.slot - 1].mode = mode;
	settle();
}

/* Brings that watch to the requested state. A second thread leaves it to the first. */
static void switch_follow(void)
{
	uint32_t none = 0, wanted;
	enum kymo_memory_mode mode;
	int rc = 0;

	if (!kymo__cas_acquire(&switching, &none, 1))
		return;
	wanted = wanted_now();
	mode = wanted & KYMO_ON_ALLOC_EXACT ? KYMO_MEMORY_EXACT : KYMO_MEMORY_SAMPLED;
	if (!wanted && outside.slot)
		switch_end(&outside);
	else if (wanted && !outside.slot)
		rc = switch_begin(&outside, mode);
	else if (wanted && outside.mode != mode)
		change_mode(mode);
	kymo__memory_done(wanted, rc != 0); /* failed: not retried at each allocation */
	kymo__store_release(&switching, 0);
}

bool memory_follow_switch(void)
{
	if (memory_thread.busy || !kymo__control())
		return false;
	memory_thread.busy = 1;
	switch_follow();
	memory_thread.busy = 0;
	return kymo__load_relaxed(&memory_mode) == KYMO_MEMORY_EXACT;
}

void memory_follow_switch_off(void)
{
	if (KYMO__UNLIKELY(wanted_now() != kymo__memory_followed))
		switch_follow();
}

__attribute__((constructor)) static void at_start(void)
{
	bool found = memory_real_find();

	memory_recorder = kymo__memory_here(switch_follow, memory_preloaded);
	if (found && memory_preloaded && kymo__is_on(KYMO_ON_ALLOC))
		memory_follow_switch();
}
