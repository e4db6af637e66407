/*
 * Relates a device's clock to the host's. Both are read together from time to time. A pair states
 * that a tick of the host and a time of the device were the same moment, within half the duration
 * of the reading. Times between two pairs are interpolated; later ones are extrapolated at the rate
 * of the last seconds. So drift is followed, and each time has an error bound: that of the pairs,
 * plus that of the rate times the distance.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include <kymo/atomic.h>

#include "base/clock.h"
#include "record/device/device.h"

#define TRIES 3 /* readings of both clocks; the narrowest counts */
#define OLD_MS 100 /* age after which they are read again */
#define ERROR_WANTED_NS 300.0 /* or earlier, if the error of the current time is larger */
#define BASELINE_NS 2000000000ull /* the rate is measured over about this long */
#define NOMINAL_UNSURE 500e-6 /* of a clock that was read once */
#define WANDER 0.2e-6 /* change of a rate within seconds */
#define STEP_NS 1000000.0 /* a clock that is off by more has been set */
#define READ_TRIES 8

/* ---- shared words -------------------------------------------------------------------------- */

/* One writer at a time (clock->syncing); readers copy again if the version changed during the
   copy. */
static void copy_words(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / 8; i++)
		((uint64_t *)to)[i] = kymo__load_relaxed((const uint64_t *)from + i);
}

static void store_words(void *to, const void *from, size_t bytes)
{
	for (size_t i = 0; i < bytes / 8; i++)
		kymo__store_relaxed((uint64_t *)to + i, ((const uint64_t *)from)[i]);
}

static bool read_begins(const struct kymo__device_clock *clock, uint32_t *version)
{
	*version = kymo__load_acquire(&clock->version);
	return !(*version & 1);
}

static bool read_holds(const struct kymo__device_clock *clock, uint32_t version)
{
	kymo__fence_acquire();
	return kymo__load_relaxed(&clock->version) == version;
}

/* False: a writer was always active, or there is no pair. */
static bool take_rate(const struct kymo__device_clock *clock, struct kymo__device_rate *out)
{
	uint32_t version;

	for (int i = 0; i < READ_TRIES; i++) {
		if (!read_begins(clock, &version))
			continue;
		copy_words(out, &clock->rate, sizeof(*out));
		if (read_holds(clock, version))
			return out->last.ticks != 0;
	}
	return false;
}

/* ---- times --------------------------------------------------------------------------------- */

static uint64_t carried(const struct kymo__device_pair *from, double ticks_per_ns,
			uint64_t device_ns)
{
	return from->ticks +
	       (uint64_t)(int64_t)((double)(int64_t)(device_ns - from->device_ns) * ticks_per_ns);
}

static uint64_t device_clock_between(const struct kymo__device_pair *a,
				     const struct kymo__device_pair *b, uint64_t device_ns)
{
	double part = (double)(device_ns - a->device_ns) / (double)(b->device_ns - a->device_ns);

	return a->ticks + (uint64_t)(part * (double)(b->ticks - a->ticks));
}

/* The error of the pairs, plus the possible change of the rate on the way to the nearer one. */
static uint64_t error_between(const struct kymo__device_pair *a, const struct kymo__device_pair *b,
			      uint64_t device_ns)
{
	uint64_t left = device_ns - a->device_ns, right = b->device_ns - device_ns;

	return (a->error_ns > b->error_ns ? a->error_ns : b->error_ns) +
	       (uint64_t)((double)(left < right ? left : right) * WANDER + 0.5);
}

/* The neighbours of a time before the last pair; false: it is before all that are kept. */
static bool neighbours(const struct kymo__device_clock *clock, uint64_t device_ns,
		       struct kymo__device_pair *a, struct kymo__device_pair *b)
{
	uint32_t count = kymo__load_relaxed(&clock->count), version;
	uint32_t kept = count < KYMO__DEVICE_PAIRS ? count : KYMO__DEVICE_PAIRS;

	for (int tries = 0; tries < READ_TRIES; tries++) {
		bool found = false;

		if (!read_begins(clock, &version))
			continue;
		for (uint32_t i = 1; i < kept && !found; i++) {
			copy_words(b, &clock->pairs[(count - i) % KYMO__DEVICE_PAIRS], sizeof(*b));
			copy_words(a, &clock->pairs[(count - i - 1) % KYMO__DEVICE_PAIRS],
				   sizeof(*a));
			found = a->device_ns <= device_ns && device_ns <= b->device_ns &&
				a->device_ns < b->device_ns;
		}
		if (read_holds(clock, version))
			return found;
	}
	return false;
}

static int align(const struct kymo__device_clock *clock, uint64_t device_ns, uint64_t *out_ticks,
		 uint64_t *out_error_ns)
{
	struct kymo__device_pair a, b;
	struct kymo__device_rate rate;
	double distance;

	if (!take_rate(clock, &rate))
		return -ENOENT;
	if (device_ns < rate.last.device_ns && neighbours(clock, device_ns, &a, &b)) {
		*out_ticks = device_clock_between(&a, &b, device_ns);
		*out_error_ns = error_between(&a, &b, device_ns);
		return 0;
	}
	distance = fabs((double)(int64_t)(device_ns - rate.last.device_ns));
	*out_ticks = carried(&rate.last, rate.ticks_per_ns, device_ns);
	*out_error_ns = rate.last.error_ns + (uint64_t)(distance * rate.unsure + 0.5);
	return 0;
}

/* ---- reading both clocks --------------------------------------------------------------------- */

static int device_now(const struct kymo__device *device, uint64_t *out_ns)
{
	const struct kymo_device_adapter *adapter = device->adapter;

	if (adapter->bytes < offsetof(struct kymo_device_adapter, flush) || !adapter->now) {
		*out_ns = clock_monotonic_ns();
		return 0;
	}
	return adapter->now(adapter->context, device->local, out_ns);
}

/* Host ticks per ns, over the whole recording so far. */
static double host_ticks_per_ns(void)
{
	const struct kymo_clock_pair *first = &kymo__process.control->pairs[0];
	struct kymo_clock_pair now;

	clock_take_pair(&now);
	if (now.monotonic_ns <= first->monotonic_ns || now.ticks <= first->ticks)
		return (double)kymo__process.ticks_per_ms / 1e6;
	return (double)(now.ticks - first->ticks) /
	       (double)(now.monotonic_ns - first->monotonic_ns);
}

static int read_pair(const struct kymo__device *device, double ticks_per_ns,
		     struct kymo__device_pair *out)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = kymo__ticks(), device_ns, width;

		if (device_now(device, &device_ns))
			return -EIO;
		width = kymo__ticks() - before;
		if (width >= best)
			continue;
		best = width;
		out->ticks = before + width / 2;
		out->device_ns = device_ns;
	}
	out->error_ns = (uint64_t)((double)best / ticks_per_ns / 2) + 1;
	return 0;
}

/* The pair from which the rate is measured: the oldest kept, but not much older than the
   baseline. */
static const struct kymo__device_pair *baseline(const struct kymo__device_clock *clock,
						const struct kymo__device_pair *last)
{
	uint32_t kept = clock->count < KYMO__DEVICE_PAIRS ? clock->count : KYMO__DEVICE_PAIRS;
	const struct kymo__device_pair *found = NULL;

	for (uint32_t i = 0; i < kept; i++) {
		const struct kymo__device_pair *at =
			&clock->pairs[(clock->count - 1 - i) % KYMO__DEVICE_PAIRS];

		if (found && last->device_ns - at->device_ns > BASELINE_NS)
			break;
		found = at;
	}
	return found;
}

/* The recent rate, or the nominal one while that is more exact. */
static void relate(const struct kymo__device_clock *clock, const struct kymo__device_pair *pair,
		   double nominal, struct kymo__device_rate *out)
{
	const struct kymo__device_pair *base = baseline(clock, pair);
	double span, unsure;

	out->last = *pair;
	out->ticks_per_ns = nominal;
	out->unsure = NOMINAL_UNSURE;
	if (!base || pair->device_ns <= base->device_ns || pair->ticks <= base->ticks)
		return;
	span = (double)(pair->device_ns - base->device_ns);
	unsure = (double)(pair->error_ns + base->error_ns) / span + WANDER;
	if (unsure >= NOMINAL_UNSURE)
		return;
	out->ticks_per_ns = (double)(pair->ticks - base->ticks) / span;
	out->unsure = unsure;
}

static void device_clock_write_row(struct kymo__device *device,
				   const struct kymo__device_rate *rate, double nominal,
				   double miss_ns)
{
	struct schema_device_clock_row row = {
		.ts_ticks = rate->last.ticks,
		.device_ns = rate->last.device_ns,
		.drift_ppm = rate->unsure < NOMINAL_UNSURE
				     ? (nominal / rate->ticks_per_ns - 1) * 1e6
				     : 0,
		.miss_ns = (int64_t)miss_ns,
		.error_ns = (uint32_t)(rate->last.error_ns < UINT32_MAX ? rate->last.error_ns
									: UINT32_MAX),
		.device = kymo__device_name_id(device),
	};

	kymo__append(SCHEMA_DEVICE_CLOCKS, &row);
}

/* Only called by the thread that is syncing. */
static void device_clock_add_pair(struct kymo__device *device, const struct kymo__device_pair *pair,
				  double nominal)
{
	struct kymo__device_clock *clock = &device->clock;
	struct kymo__device_rate rate, before;
	double miss_ns = 0;
	uint32_t version = clock->version;

	if (take_rate(clock, &before)) {
		uint64_t foretold = carried(&before.last, before.ticks_per_ns, pair->device_ns);

		miss_ns = (double)(int64_t)(pair->ticks - foretold) / nominal;
	}
	kymo__store_relaxed(&clock->version, version + 1);
	kymo__fence_release();
	/* After the clock was set, earlier pairs are meaningless: start over. */
	if (fabs(miss_ns) > STEP_NS && fabs(miss_ns) > 10.0 * (double)pair->error_ns)
		kymo__store_relaxed(&clock->count, 0);
	relate(clock, pair, nominal, &rate);
	store_words(&clock->pairs[clock->count % KYMO__DEVICE_PAIRS], pair, sizeof(*pair));
	kymo__store_relaxed(&clock->count, clock->count + 1);
	store_words(&clock->rate, &rate, sizeof(rate));
	kymo__store_release(&clock->version, version + 2);
	device_clock_write_row(device, &rate, nominal, miss_ns);
}

static int sync_now(struct kymo__device *device, const struct kymo__device_pair *given)
{
	struct kymo__device_pair pair = { 0 };
	uint64_t unused;
	uint32_t idle = 0;
	double nominal = 1;
	int rc;

	if (!kymo__process_ready())
		return -EAGAIN;
	if (!kymo__cas_acquire(&device->clock.syncing, &idle, 1))
		return -EAGAIN; /* another thread is syncing */
	/* An unreadable clock costs one attempt. */
	rc = given || !device_now(device, &unused) ? 0 : -EIO;
	if (!rc) {
		nominal = host_ticks_per_ns();
		if (given)
			pair = *given;
		else
			rc = read_pair(device, nominal, &pair);
	}
	if (!rc)
		device_clock_add_pair(device, &pair, nominal);
	kymo__store_release(&device->clock.syncing, 0);
	return rc;
}

/* True if the error of the current time is too large, or the last reading is old. */
static bool device_clock_is_due(const struct kymo__device *device)
{
	struct kymo__device_rate rate;
	uint64_t age;
	double age_ns;

	if (!take_rate(&device->clock, &rate))
		return true;
	age = kymo__ticks() - rate.last.ticks;
	age_ns = (double)(int64_t)age * 1e6 / (double)(kymo__process.ticks_per_ms + 1);
	return age_ns > OLD_MS * 1e6 || age_ns * rate.unsure > ERROR_WANTED_NS;
}

void kymo__device_sync_if_due(struct kymo__device *device)
{
	if (device_clock_is_due(device))
		sync_now(device, NULL);
}

/* ---- for other files ------------------------------------------------------------------------- */

int kymo__device_when(struct kymo__device *device, uint64_t device_ns, uint64_t *out_ticks,
		      uint64_t *out_error_ns)
{
	return align(&device->clock, device_ns, out_ticks, out_error_ns);
}

int kymo_device_align(uint32_t device, uint64_t device_ns, uint64_t *out_ticks,
		      uint64_t *out_error_ns)
{
	struct kymo__device *at = kymo__device_get(device);

	if (!at || !out_ticks || !out_error_ns)
		return -EINVAL;
	return align(&at->clock, device_ns, out_ticks, out_error_ns);
}

int kymo_device_sync(uint32_t device)
{
	struct kymo__device *at = kymo__device_get(device);

	return at ? sync_now(at, NULL) : -EINVAL;
}

int kymo_device_sync_pair(uint32_t device, uint64_t device_ns, uint64_t host_ticks,
			  uint64_t error_ns)
{
	const struct kymo__device_pair pair = { host_ticks, device_ns, error_ns };
	struct kymo__device *at = kymo__device_get(device);

	return at ? sync_now(at, &pair) : -EINVAL;
}
