/* vAccel's calls. The two of them that are hot, start and stop, take no lock and write nothing that
   two threads share. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <vaccel_prof.h>

#include <kymo/atomic.h>

#include "vaccel_log.h"
#include "vaccel_slots.h"

#define UNUSED "vaccel_prof regions, not enabled" /* views/report/summary.c looks for this name */

/* Unused: off, and not called yet. */
enum state { STATE_UNKNOWN, STATE_UNUSED, STATE_OFF, STATE_ON };

static uint32_t state; /* enum state; atomic; every thread computes the same value */

/* The first call while regions are off. A recording then holds the name UNUSED, which the summary
   reports. */
static bool note_unused(void)
{
	uint32_t unused = STATE_UNUSED;

	if (kymo__cas_acq_rel_acquire(&state, &unused, STATE_OFF) && kymo_enabled())
		kymo_name(UNUSED);
	return unused == STATE_ON;
}

static bool find_out(void)
{
	struct kymo_error err = { 0 };
	uint32_t unknown = STATE_UNKNOWN, found = STATE_OFF;

	/* Off meanwhile, for what is set up below, and so that one thread alone complains. */
	if (!kymo__cas_acq_rel_acquire(&state, &unknown, STATE_OFF))
		return unknown == STATE_UNUSED ? note_unused() : unknown == STATE_ON;
	if (!log_is_wanted())
		found = STATE_UNUSED;
	else if (!kymo_enable(&err))
		found = STATE_ON;
	else if (err.code != EPERM) /* KYMO=off: known, and wanted */
		log_complain(err.text, "");
	kymo__store_release(&state, found);
	return found == STATE_ON;
}

__attribute__((constructor)) static void vaccel_prof_on_load(void)
{
	pthread_atfork(NULL, NULL, slots_after_fork);
	if (!state)
		find_out();
}

static inline bool vaccel_prof_is_on(void)
{
	uint32_t now = kymo__load_relaxed(&state);

	return KYMO__LIKELY(now == STATE_ON) || (KYMO__UNLIKELY(now < STATE_OFF) && find_out());
}

bool vaccel_prof_enabled(void)
{
	return vaccel_prof_is_on();
}

/* ---- one region ---------------------------------------------------------------------------- */

int vaccel_prof_region_init(struct vaccel_prof_region *region, const char *name)
{
	size_t bytes = name ? strlen(name) + 1 : 0;
	char *long_name = NULL;
	struct slot *slot;

	if (!region)
		return vaccel_prof_is_on() ? EINVAL : 0;
	/* First of all: the name may be the one that the region owns now. */
	if (bytes > SLOT_NAME_BYTES) {
		long_name = malloc(bytes);
		if (!long_name)
			return ENOMEM;
		memcpy(long_name, name, bytes);
	}
	slot = slot_renew(region);
	if (!slot) {
		free(long_name);
		return ENOMEM;
	}
	if (!name)
		memset(slot->name, 0, SLOT_NAME_BYTES);
	else if (!long_name)
		memmove(slot->name, name, bytes);
	slot->long_name = long_name;
	region->name = long_name ? long_name : slot->name;
	region->name_owned = true;
	region->nr_entries = 0;
	return 0;
}

int vaccel_prof_region_destroy(struct vaccel_prof_region *region)
{
	struct slot *slot = region ? vaccel_slots_slot_of(region) : NULL;

	if (!region)
		return vaccel_prof_is_on() ? EINVAL : 0;
	if (slot) {
		if (region->name == slot->name || region->name == slot->long_name)
			region->name = NULL;
		slot_detach(slot);
	}
	region->name_owned = false;
	region->nr_entries = 0;
	region->samples = NULL;
	region->size = 0;
	return 0;
}

int vaccel_prof_region_release(struct vaccel_prof_region *region)
{
	return vaccel_prof_region_destroy(region);
}

static inline uint32_t vaccel_prof_name_of(const struct slot *slot)
{
	return kymo__load_relaxed(&slot->name_id);
}

static inline uint32_t tag_of(const struct slot *slot)
{
	return kymo__load_relaxed(&slot->tag);
}

static __attribute__((noinline)) int start_first(struct vaccel_prof_region *region)
{
	struct slot *slot = slot_attach(region);

	if (!slot)
		return ENOMEM;
	/* By name alone: regions of one name that live one after another are one in the
	   recording. */
	if (!vaccel_prof_name_of(slot))
		kymo__store_relaxed(&slot->name_id, kymo_name(region->name ? region->name : ""));
	return kymo__region_open(vaccel_prof_name_of(slot), tag_of(slot)) ? ENOMEM : 0;
}

int vaccel_prof_region_start(struct vaccel_prof_region *region)
{
	struct slot *slot;

	if (!vaccel_prof_is_on())
		return 0;
	if (KYMO__UNLIKELY(!region))
		return EINVAL;
	if (KYMO__UNLIKELY(!kymo_enabled()))
		return 0;
	slot = vaccel_slots_slot_of(region);
	if (KYMO__UNLIKELY(!slot || !vaccel_prof_name_of(slot)))
		return start_first(region);
	return KYMO__UNLIKELY(kymo__region_open(vaccel_prof_name_of(slot), tag_of(slot))) ? ENOMEM
											  : 0;
}

/* One instruction, so that a signal handler in between loses nothing; no lock, as only this thread
   writes here. */
static inline void vaccel_prof_add(uint64_t *sum, uint64_t value)
{
#if defined(__x86_64__)
	__asm__ volatile("addq %1, %0" : "+m"(*sum) : "r"(value) : "cc");
#else
	kymo__fetch_add_relaxed(sum, value);
#endif
}

int vaccel_prof_region_stop(struct vaccel_prof_region *region)
{
	uint64_t end_ticks = kymo__ticks(), start_ticks;
	struct kymo__lane *lane = kymo__lane;
	struct shard *shard;
	struct slot *slot;

	if (!vaccel_prof_is_on())
		return 0;
	if (KYMO__UNLIKELY(!region))
		return EINVAL;
	slot = vaccel_slots_slot_of(region);
	if (KYMO__UNLIKELY(!slot || !lane ||
			   kymo__region_close(vaccel_prof_name_of(slot), tag_of(slot), end_ticks,
					      &start_ticks)))
		return kymo_enabled() ? ENOENT : 0;
	if (KYMO__UNLIKELY(start_ticks < kymo__load_relaxed(&slot->cleared_ticks)))
		return 0;
	shard = shard_of(slot, lane->index);
	if (KYMO__UNLIKELY(!shard || shard->live != kymo__load_relaxed(&slot->generation))) {
		shard = shard_register(slot, lane);
		if (!shard)
			return ENOMEM;
	}
	vaccel_prof_add(&shard->ticks, end_ticks - start_ticks);
	vaccel_prof_add(&shard->count, 1);
	if (KYMO__LIKELY(kymo__load_relaxed(&slot->solo) == lane->index + 1))
		kymo__store_relaxed(&region->nr_entries,
				    kymo__load_relaxed(&slot->others) + shard->count);
	else
		slot_show(slot, shard, lane->index, end_ticks);
	return 0;
}

/* How many entries, and their time; brings nr_entries up to date. */
static uint64_t sum_of(const struct vaccel_prof_region *region, uint64_t *out_ns)
{
	struct slot *slot = vaccel_slots_slot_of(region);
	uint64_t count, ticks, ns, before;

	*out_ns = 0;
	if (!slot)
		return 0;
	slot_sum(slot, &count, &ticks);
	ns = kymo_ticks_ns(ticks);
	before = kymo__load_relaxed(&slot->printed_ns);
	while (ns > before && !kymo__cas_weak_relaxed(&slot->printed_ns, &before, ns))
		;
	*out_ns = ns > before ? ns : before;
	if (count > kymo__load_relaxed(&region->nr_entries))
		kymo__store_relaxed(&slot->region->nr_entries, count);
	return count;
}

int vaccel_prof_region_print(const struct vaccel_prof_region *region)
{
	uint64_t count, ns;

	if (!vaccel_prof_is_on())
		return 0;
	if (!region)
		return EINVAL;
	count = sum_of(region, &ns);
	if (count)
		log_entry(region->name, ns, count);
	return 0;
}

/* ---- arrays -------------------------------------------------------------------------------- */

int vaccel_prof_regions_init(struct vaccel_prof_region *regions, int count)
{
	if (!regions || count < 0)
		return vaccel_prof_is_on() ? EINVAL : 0;
	for (int i = 0; i < count; i++) {
		int rc = vaccel_prof_region_init(&regions[i], NULL);

		if (rc)
			return rc;
	}
	return 0;
}

/* Calls for every region of that name; the first error, or EINVAL where there is none. */
static int vaccel_prof_each_of_name(struct vaccel_prof_region *regions, int count, const char *name,
				    int (*call)(struct vaccel_prof_region *region))
{
	bool found = false;
	int rc = 0;

	if (!vaccel_prof_is_on())
		return 0;
	for (int i = 0; regions && name && i < count; i++) {
		int failed = 0;

		if (!regions[i].name || strcmp(regions[i].name, name))
			continue;
		found = true;
		failed = call(&regions[i]);
		rc = rc ? rc : failed;
	}
	return found ? rc : EINVAL;
}

int vaccel_prof_regions_start_by_name(struct vaccel_prof_region *regions, int count,
				      const char *name)
{
	return vaccel_prof_each_of_name(regions, count, name, vaccel_prof_region_start);
}

int vaccel_prof_regions_stop_by_name(struct vaccel_prof_region *regions, int count,
				     const char *name)
{
	return vaccel_prof_each_of_name(regions, count, name, vaccel_prof_region_stop);
}

int vaccel_prof_regions_clear(struct vaccel_prof_region *regions, int count)
{
	if (!vaccel_prof_is_on())
		return 0;
	if (!regions || count < 0)
		return EINVAL;
	for (int i = 0; i < count; i++) {
		struct slot *slot = vaccel_slots_slot_of(&regions[i]);

		if (slot)
			slot_clear(slot);
		kymo__store_relaxed(&regions[i].nr_entries, 0);
	}
	return 0;
}

int vaccel_prof_regions_release(struct vaccel_prof_region *regions, int count)
{
	if (!regions || count < 0)
		return vaccel_prof_is_on() ? EINVAL : 0;
	for (int i = 0; i < count; i++)
		vaccel_prof_region_destroy(&regions[i]);
	return 0;
}

int vaccel_prof_regions_print_all(const struct vaccel_prof_region *regions, int count)
{
	if (!vaccel_prof_is_on())
		return 0;
	if (!regions || count < 0)
		return EINVAL;
	for (int i = 0; i < count; i++)
		vaccel_prof_region_print(&regions[i]);
	return 0;
}

/* Lines into out, where it is not NULL; the bytes that all of them need. */
static size_t lines_into(char *out, size_t bytes, const struct vaccel_prof_region *regions,
			 int count, int *out_lines)
{
	size_t need = 0;

	*out_lines = 0;
	for (int i = 0; i < count; i++) {
		uint64_t ns, entries = sum_of(&regions[i], &ns);
		size_t room = out && need < bytes ? bytes - need : 0;

		if (!entries)
			continue;
		*out_lines += room > 0;
		need += (size_t)log_format(room ? out + need : NULL, room, regions[i].name, ns,
					   entries) +
			1;
	}
	return need;
}

int vaccel_prof_regions_print_all_to_buf(char **buf, size_t len,
					 const struct vaccel_prof_region *regions, int count)
{
	int lines;

	if (!vaccel_prof_is_on())
		return 0;
	if (!regions || count < 0)
		return -EINVAL;
	if (!buf)
		return (int)lines_into(NULL, 0, regions, count, &lines);
	*buf = calloc(1, len ? len : 1);
	if (!*buf)
		return -ENOMEM;
	lines_into(*buf, len, regions, count, &lines);
	return lines;
}
