/* Operations of devices, collectives and critical paths of a target: read by SQL, beside the
   answers that do not wait for them. */
#include "serve/target.h"

#define DEVICES_LEAST_NS UINT64_C(1000000000)

/* What a reading of devices needs to know of the feed. */
struct devices_wanted {
	bool due, live;
	uint64_t rows;
};

static struct devices_wanted devices_wanted(struct target *target)
{
	struct devices_wanted wanted;

	pthread_rwlock_rdlock(&target->feed_lock);
	wanted = (struct devices_wanted){ .due = feed_devices_due(&target->feed),
					  .live = target->feed.live,
					  .rows = target->feed.device_rows };
	pthread_rwlock_unlock(&target->feed_lock);
	return wanted;
}

/* Under devices_lock. While the program runs they are all read again each time, so that takes at
   most a sixth of the time. */
static bool devices_are_due(const struct target *target, const struct devices_wanted *wanted)
{
	uint64_t least = 5 * target->devices_cost_ns;
	uint64_t at_ns = kymo__load_relaxed(&target->devices_at_ns);

	least = least < DEVICES_LEAST_NS ? DEVICES_LEAST_NS : least;
	return wanted->due && (!wanted->live || !at_ns || target_clock_ns() - at_ns >= least);
}

static void read_devices_part(struct target *target, const struct devices_wanted *wanted,
			      enum feed_part part)
{
	struct kymo_error err = { 0 };
	char path[KYMO_PATH_BYTES];
	int fd;

	target_copy_path(target, path);
	fd = feed_devices_ask(path, wanted->live, part, &err);
	pthread_rwlock_wrlock(&target->feed_lock);
	feed_devices_take(&target->feed, fd, path, part, wanted->rows);
	pthread_rwlock_unlock(&target->feed_lock);
}

/* The first picture of a recording that has ended does not wait for the critical path. Later both
   are taken at once, so that the track of the path does not vanish meanwhile. */
static void read_devices(struct target *target)
{
	uint64_t began_ns = target_clock_ns();
	struct devices_wanted wanted;

	pthread_mutex_lock(&target->devices_lock);
	wanted = devices_wanted(target);
	if (devices_are_due(target, &wanted)) {
		if (wanted.live || kymo__load_relaxed(&target->devices_at_ns)) {
			read_devices_part(target, &wanted, FEED_DEVICES);
		} else {
			read_devices_part(target, &wanted, FEED_QUEUES);
			read_devices_part(target, &wanted, FEED_PATH);
		}
		kymo__store_relaxed(&target->devices_at_ns, target_clock_ns());
		target->devices_cost_ns = target_clock_ns() - began_ns;
	}
	pthread_mutex_unlock(&target->devices_lock);
}

static void *read_devices_thread(void *context)
{
	struct target *target = context;

	read_devices(target);
	kymo__store_release(&target->devices_reading, 0);
	return NULL;
}

static void read_devices_beside(struct target *target)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (kymo__fetch_add_seq_cst(&target->devices_reading, 1)) {
		kymo__fetch_sub_seq_cst(&target->devices_reading, 1);
		return;
	}
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, read_devices_thread, target))
		kymo__fetch_sub_seq_cst(&target->devices_reading, 1);
	pthread_attr_destroy(&attributes);
}

bool target_look_devices(struct target *target, bool wait)
{
	bool due = devices_wanted(target).due;

	if (due && wait)
		read_devices(target);
	else if (due)
		read_devices_beside(target);
	/* New rows of a running program are read soon: what was read is shown as all. */
	return !due || wait || kymo__load_relaxed(&target->devices_at_ns);
}
