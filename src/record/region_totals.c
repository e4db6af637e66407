/*
 * Totals of a region, queried inside the process: the slots of all streams and the rows not folded
 * yet, by the protocol of base/fold.h, while other threads record. Rows are read from their file,
 * because their thread may unmap a segment at any time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kymo/atomic.h>

#include "base/clock.h"
#include "base/fold.h"
#include "record/record.h"

#define ATTEMPTS 200

struct sums {
	uint64_t count, sum_ticks, min_ticks, max_ticks;
	unsigned __int128 square;
	uint64_t histogram[KYMO_HIST_BUCKETS];
};

/* One stream's share: its slot at one moment. */
struct part {
	struct kymo_totals_slot slot;
	uint64_t histogram_upto;
	bool has_histogram;
	uint64_t histogram[KYMO_HIST_BUCKETS];
};

/* False: the thread is folding. */
static bool copy_slot(const struct kymo__stream *stream, uint32_t id, struct part *out)
{
	uint32_t number = kymo__load_relaxed(&stream->slot_of_name[id]);
	const struct kymo_totals_slot *slot;
	uint64_t generation;

	memset(out, 0, sizeof(*out));
	out->has_histogram = !number; /* rows that were never folded: start a histogram here */
	if (!number || number == 0xffffu)
		return true;
	slot = (const struct kymo_totals_slot *)(const void *)(stream->totals.base +
							       kymo_totals_slot_offset(number - 1));
	generation = kymo__load_acquire(&slot->generation);
	out->histogram_upto = kymo__load_acquire(&stream->live->histogram_upto);
	memcpy(&out->slot, slot, sizeof(*slot));
	out->has_histogram = number <= KYMO_TOTALS_WITH_HIST;
	if (out->has_histogram)
		memcpy(out->histogram, slot + 1, sizeof(out->histogram));
	kymo__fence_acquire();
	return kymo__load_relaxed(&slot->generation) == generation &&
	       kymo__load_relaxed(&stream->live->histogram_upto) == out->histogram_upto;
}

/* How many of the rows [first, first + count) could be read. They are contiguous: a batch crosses
   no end. */
static uint64_t read_rows(const struct kymo__stream *stream, uint64_t first, uint64_t count,
			  struct kymo_zone_row *out)
{
	uint64_t slot = stream->cap_rows ? first % stream->cap_rows
					 : first - stream->segment_first_row;
	char path[KYMO_PATH_BYTES + 48];
	ssize_t bytes;
	int fd;

	snprintf(path, sizeof(path), "%s/s%u.%llu", kymo__process.dir, stream->id,
		 stream->cap_rows ? 0ull : (unsigned long long)stream->live->segment_next - 1);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return 0;
	bytes = pread(fd, out, count * sizeof(*out),
		      (off_t)(sizeof(struct kymo_segment_head) + slot * sizeof(*out)));
	close(fd);
	return bytes > 0 ? (uint64_t)bytes / sizeof(*out) : 0;
}

static bool read_part(const struct kymo__stream *stream, uint32_t id, struct part *out)
{
	static const uint32_t most = KYMO_BATCH_ROWS * 2;
	struct kymo_zone_row rows[KYMO_BATCH_ROWS * 2];
	uint64_t state = kymo__load_acquire(&stream->live->fold_state);
	uint64_t folded = state >> 1, count, head;

	if (!copy_slot(stream, id, out))
		return false;
	head = kymo__load_acquire(&stream->live->head);
	count = head > folded ? head - folded : 0;
	if (count)
		count = read_rows(stream, folded, count < most ? count : most, rows);
	kymo__fence_acquire();
	if (kymo__load_relaxed(&stream->live->fold_state) != state)
		return false;
	for (uint64_t i = 0; i < count; i++)
		if (rows[i].name == id)
			fold_resume(&out->slot, out->has_histogram ? out->histogram : NULL,
				    out->histogram_upto, folded + i, rows[i].duration_ticks, 0);
	return true;
}

/* A thread at full speed may fold during every attempt to read its newest rows. The folded part is
   still valid, and was complete a few microseconds ago. */
static bool read_part_or_folded(const struct kymo__stream *stream, uint32_t id, struct part *out)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++)
		if (read_part(stream, id, out))
			return true;
	for (int attempt = 0; attempt < ATTEMPTS; attempt++)
		if (copy_slot(stream, id, out))
			return true;
	return false;
}

static void region_totals_add_part(struct sums *sums, const struct part *part)
{
	const struct kymo_totals_half *half = &part->slot.half[part->slot.generation & 1];

	if (!half->count)
		return;
	if (!sums->count || half->min_ticks < sums->min_ticks)
		sums->min_ticks = half->min_ticks;
	if (half->max_ticks > sums->max_ticks)
		sums->max_ticks = half->max_ticks;
	sums->count += half->count;
	sums->sum_ticks += half->sum_ticks;
	sums->square += (unsigned __int128)half->square_high << 64 | half->square_low;
	for (uint32_t i = 0; part->has_histogram && i < KYMO_HIST_BUCKETS; i++)
		sums->histogram[i] += part->histogram[i];
}

static uint64_t count_open(const struct kymo_open_stack *open, uint32_t id)
{
	uint32_t depth = kymo__load_relaxed(&open->depth);
	uint64_t found = 0;

	for (uint32_t i = 0; i < depth && i < KYMO_OPEN_MAX; i++)
		found += kymo__load_relaxed(&open->entries[i].name) == id;
	for (uint32_t i = 0; i < KYMO_RANGES_MAX; i++)
		found += kymo__load_relaxed(&open->ranges[i].name) == id;
	return found;
}

static void sum_streams(uint32_t id, struct sums *sums, struct kymo_totals *out)
{
	const struct kymo_control *control = kymo__process.control;
	const struct kymo__stream *stream;
	struct part part;

	for (uint32_t i = 0; kymo__stream_at(i, &stream); i++) {
		if (!stream || stream->table->index != SCHEMA_ZONES)
			continue;
		for (int cause = 0; cause < KYMO_DROP_CAUSE_COUNT; cause++)
			out->dropped += kymo__load_relaxed(&stream->live->dropped[cause]);
		out->open += count_open(stream->open, id);
		if (!stream->totals.base)
			continue;
		if (read_part_or_folded(stream, id, &part))
			region_totals_add_part(sums, &part);
		else
			out->incomplete = 1;
	}
	for (int cause = 0; cause < KYMO_DROP_CAUSE_COUNT; cause++)
		out->dropped += control->lost[SCHEMA_ZONES].dropped[cause];
}

/* ---- from ticks to results ---- */

/* Avoids libm for a square root. */
static double root(double value)
{
	double guess = value > 1 ? value : 1;

	if (value <= 0)
		return 0;
	for (int i = 0; i < 1100 && guess * guess > value * (1 + 1e-12); i++)
		guess = (guess + value / guess) / 2;
	return guess;
}

/* 0: no histogram is kept. */
static uint64_t quantile_ns(const struct sums *sums, double share, double scale,
			    const struct kymo_totals *about)
{
	int64_t ns = hist_quantile(sums->histogram, share, scale, (int64_t)about->min_ns,
				   (int64_t)about->max_ns);

	return ns > 0 ? (uint64_t)ns : 0;
}

static void to_ns(const struct sums *sums, struct kymo_totals *out)
{
	uint64_t mult = kymo_ticks_ns(UINT64_C(1) << 32);
	double scale = clock_tick_ns(mult);
	double count = (double)sums->count, mean = (double)sums->sum_ticks / count;
	double spread = (double)sums->square - mean * (double)sums->sum_ticks;

	out->count = sums->count;
	out->total_ns = (uint64_t)clock_span_ns(mult, sums->sum_ticks);
	out->min_ns = (uint64_t)clock_span_ns(mult, sums->min_ticks);
	out->max_ns = (uint64_t)clock_span_ns(mult, sums->max_ticks);
	out->mean_ns = mean * scale;
	out->stddev_ns = sums->count > 1 ? root(spread / (count - 1)) * scale : 0;
	out->p50_ns = quantile_ns(sums, 0.5, scale, out);
	out->p99_ns = quantile_ns(sums, 0.99, scale, out);
}

int kymo_region_totals(const struct kymo_region *region, struct kymo_totals *out)
{
	struct kymo_totals all = { 0 };
	struct sums sums;
	uint32_t id;

	if (!region || !out || out->bytes < sizeof(out->bytes))
		return -EINVAL;
	all.bytes = out->bytes < sizeof(all) ? out->bytes : sizeof(all);
	id = kymo__load_relaxed(&region->id);
	if (id && id < KYMO_NAMES_MAX && kymo__process_ready()) {
		memset(&sums, 0, sizeof(sums));
		sum_streams(id, &sums, &all);
		if (sums.count)
			to_ns(&sums, &all);
		all.own_cost_ns = kymo_ticks_ns(kymo__process.control->own_cost_ticks * 1024) /
				  1024;
	}
	memcpy(out, &all, all.bytes);
	return 0;
}

/* ---- printing ------------------------------------------------------------------------------- */

int kymo_region_print_to(char *buf, size_t bytes, const struct kymo_region *region)
{
	struct kymo_totals totals = { .bytes = sizeof(totals) };
	int rc = kymo_region_totals(region, &totals);

	if (bytes && buf)
		buf[0] = '\0';
	if (rc || (!totals.count && !totals.open))
		return rc;
	return snprintf(buf, bytes,
			"[kymo] %s: count: %llu total: %llu ns mean: %.1f ns min: %llu ns "
			"p50: %llu ns p99: %llu ns max: %llu ns stddev: %.1f ns open: %llu "
			"dropped: %llu own_cost: %llu ns per entry%s\n",
			region->name ? region->name : "", (unsigned long long)totals.count,
			(unsigned long long)totals.total_ns, totals.mean_ns,
			(unsigned long long)totals.min_ns, (unsigned long long)totals.p50_ns,
			(unsigned long long)totals.p99_ns, (unsigned long long)totals.max_ns,
			totals.stddev_ns, (unsigned long long)totals.open,
			(unsigned long long)totals.dropped, (unsigned long long)totals.own_cost_ns,
			totals.incomplete ? " incomplete: a thread could not be read" : "");
}

int kymo_region_print(const struct kymo_region *region)
{
	char line[KYMO_NAME_BYTES_MAX + 512];
	int bytes = kymo_region_print_to(line, sizeof(line), region), kept_errno = errno;

	if (bytes <= 0)
		return bytes;
	if ((size_t)bytes >= sizeof(line))
		bytes = sizeof(line) - 1;
	fflush(stdout); /* after the program's output so far */
	if (write(STDOUT_FILENO, line, (size_t)bytes) < 0)
		errno = kept_errno; /* no way to report it */
	return 0;
}

int kymo_regions_print_all(const struct kymo_region *regions, size_t count)
{
	if (!regions)
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		kymo_region_print(&regions[i]);
	return 0;
}
