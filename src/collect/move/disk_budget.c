/* Which segments stay on disk: within the budget, and as the rules of --keep say. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/move/archive_inside.h"

#define EXPIRE_NS 5000000000ull /* between two looks at the rules */
/* Rows of at least this many periods, or of a quarter of the age, are thinned together: the file
   that they become is then large enough to be worth one. */
#define BATCH_PERIODS 32
#define BATCH_SEGMENTS 4096
#define BATCH_BYTES (64ull << 20)

static struct archive_segment *queued(const struct archive *archive, size_t index)
{
	return &archive->queue[(archive->queue_first + index) % archive->queue_room];
}

static void remove_segment(struct archive *archive, const struct archive_segment *segment)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/s%u.%" PRIu64, segment->process, segment->stream,
		 segment->sequence);
	unlinkat(archive->disk_fd, path, 0);
	archive->disk_bytes -= segment->bytes < archive->disk_bytes ? segment->bytes
								    : archive->disk_bytes;
}

static bool is_kept(const struct archive *archive, const struct archive_segment *segment)
{
	const struct keep_rule *rule = segment->rule < 0 ? NULL
							 : &archive->keep.list[segment->rule];

	return rule &&
	       (rule->all || (rule->level_count && segment->level + 1 == rule->level_count &&
			      rule->levels[segment->level].age_ns == KEEP_FOREVER));
}

/* Tables with the rule `all` come last. */
static void remove_oldest(struct archive *archive)
{
	size_t at = 0;

	while (at < archive->queue_count && is_kept(archive, queued(archive, at)))
		at++;
	if (at == archive->queue_count)
		at = 0;
	remove_segment(archive, queued(archive, at));
	for (; at > 0; at--)
		*queued(archive, at) = *queued(archive, at - 1);
	archive->queue_first = (archive->queue_first + 1) % archive->queue_room;
	archive->queue_count--;
	archive->removed_segments++;
}

int archive_rule(const struct archive *archive, int head_fd)
{
	char table[sizeof(((struct kymo_stream_head *)0)->table) + 1] = "";

	if (!archive->keep.count || !archive_read_exactly(head_fd, table, sizeof(table) - 1,
							  offsetof(struct kymo_stream_head, table)))
		return -1;
	return keep_rules_find(&archive->keep, table);
}

static bool is_expired(const struct archive *archive, const struct archive_segment *segment,
		       const uint64_t *bytes_of_rule, uint64_t now_ns)
{
	const struct keep_rule *rule = segment->rule < 0 ? NULL
							 : &archive->keep.list[segment->rule];

	if (!rule || rule->all)
		return false;
	return (rule->age_ns && now_ns > segment->arrived_ns &&
		now_ns - segment->arrived_ns > rule->age_ns) ||
	       (rule->bytes && bytes_of_rule[segment->rule] > rule->bytes);
}

/* ---- thinning -------------------------------------------------------------------------------- */

static uint64_t age_of(const struct archive_segment *segment, uint64_t now_ns)
{
	return now_ns > segment->arrived_ns ? now_ns - segment->arrived_ns : 0;
}

/* Older than its level allows. */
static bool is_due(const struct archive *archive, const struct archive_segment *segment,
		   uint64_t now_ns)
{
	const struct keep_rule *rule = segment->rule < 0 ? NULL
							 : &archive->keep.list[segment->rule];

	return rule && segment->level < rule->level_count &&
	       age_of(segment, now_ns) > rule->levels[segment->level].age_ns;
}

static bool is_of_stream(const struct archive_segment *segment, const struct archive_segment *other)
{
	return segment->stream == other->stream && segment->level == other->level &&
	       !strcmp(segment->process, other->process);
}

/* The due segments of the stream of the one at index `at`, in order. */
static size_t disk_budget_gather_batch(const struct archive *archive, size_t at, uint64_t now_ns,
				       struct archive_segment **batch)
{
	uint64_t bytes = 0;
	size_t count = 0;

	for (size_t i = at; i < archive->queue_count && count < BATCH_SEGMENTS; i++) {
		struct archive_segment *segment = queued(archive, i);

		if (!is_of_stream(segment, queued(archive, at)))
			continue;
		if (!is_due(archive, segment, now_ns) ||
		    (count && segment->bytes > BATCH_BYTES - bytes))
			break;
		bytes += segment->bytes < BATCH_BYTES ? segment->bytes : BATCH_BYTES;
		batch[count++] = segment;
	}
	return count;
}

/* A batch that grows no more is thinned as it is: its stream has ended, or is slow. */
static bool is_worth_thinning(struct archive_segment *const *batch, size_t count,
			      const struct keep_rule *rule, uint64_t now_ns)
{
	const struct keep_level *level = &rule->levels[batch[0]->level];
	uint64_t period_ns = level[1].period_ns, span_ns = BATCH_PERIODS * period_ns;
	uint64_t bytes = 0;

	if (span_ns < level->age_ns / 4)
		span_ns = level->age_ns / 4;
	for (size_t i = 0; i < count; i++)
		bytes += batch[i]->bytes;
	return batch[count - 1]->arrived_ns - batch[0]->arrived_ns >= span_ns ||
	       bytes > BATCH_BYTES / 2 || count == BATCH_SEGMENTS ||
	       age_of(batch[0], now_ns) > level->age_ns + 2 * span_ns;
}

static void expire_segment(struct archive *archive, struct archive_segment *segment)
{
	remove_segment(archive, segment);
	archive->expired_segments++;
	segment->process[0] = '\0';
}

/* The first of the batch stands for all; the others leave the queue. */
static void put_thinned(struct archive *archive, struct archive_segment *const *batch, size_t count,
			uint64_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		archive->disk_bytes -= batch[i]->bytes < archive->disk_bytes ? batch[i]->bytes
									     : archive->disk_bytes;
		if (i)
			batch[i]->process[0] = '\0';
	}
	batch[0]->arrived_ns = batch[count - 1]->arrived_ns;
	batch[0]->bytes = bytes;
	batch[0]->level++;
	archive->disk_bytes += bytes;
	archive->thinned_segments += count;
}

/* False: the disk is full; the next look tries again. */
static bool thin_or_remove(struct archive *archive, struct archive_segment *const *batch,
			   size_t count, uint64_t now_ns)
{
	const struct keep_rule *rule = &archive->keep.list[batch[0]->rule];
	uint64_t bytes = 0;
	int rc = 1;

	if (batch[0]->level + 1 < rule->level_count) {
		if (archive->ns_per_tick <= 0 || !is_worth_thinning(batch, count, rule, now_ns))
			return true;
		rc = archive_thin(archive, (const struct archive_segment *const *)batch, count,
				  rule->levels[batch[0]->level + 1].period_ns, &bytes);
	}
	if (!rc)
		put_thinned(archive, batch, count, bytes);
	for (size_t i = 0; i < count && rc > 0; i++)
		expire_segment(archive, batch[i]);
	return rc >= 0;
}

static void disk_budget_drop_gone(struct archive *archive)
{
	size_t left = 0;

	for (size_t i = 0; i < archive->queue_count; i++)
		if (queued(archive, i)->process[0])
			*queued(archive, left++) = *queued(archive, i);
	archive->queue_count = left;
}

/* Each stream once: at its first due segment of each level. */
static void thin_old(struct archive *archive, uint64_t now_ns)
{
	struct archive_segment **batch = malloc(BATCH_SEGMENTS * sizeof(struct archive_segment *));
	const struct archive_segment *seen[64];
	size_t seen_count = 0;

	for (size_t i = 0; batch && i < archive->queue_count && seen_count < 64; i++) {
		struct archive_segment *segment = queued(archive, i);
		bool again = !segment->process[0] || !is_due(archive, segment, now_ns);

		for (size_t k = 0; k < seen_count && !again; k++)
			again = is_of_stream(segment, seen[k]);
		if (again)
			continue;
		seen[seen_count++] = segment;
		if (!thin_or_remove(archive, batch,
				    disk_budget_gather_batch(archive, i, now_ns, batch), now_ns))
			break;
	}
	free(batch);
	disk_budget_drop_gone(archive);
}

void archive_expire(struct archive *archive)
{
	uint64_t now_ns = archive->clock();
	uint64_t bytes[KEEP_RULES_MOST] = { 0 };
	size_t left = 0;

	if (!archive->keep.count || now_ns - archive->expired_ns < EXPIRE_NS)
		return;
	archive->expired_ns = now_ns;
	thin_old(archive, now_ns);
	for (size_t i = 0; i < archive->queue_count; i++)
		if (queued(archive, i)->rule >= 0)
			bytes[queued(archive, i)->rule] += queued(archive, i)->bytes;
	for (size_t i = 0; i < archive->queue_count; i++) {
		struct archive_segment *segment = queued(archive, i);

		if (is_expired(archive, segment, bytes, now_ns)) {
			bytes[segment->rule] -= segment->bytes;
			remove_segment(archive, segment);
			archive->expired_segments++;
		} else {
			*queued(archive, left++) = *segment;
		}
	}
	archive->queue_count = left;
}

static bool queue_grow(struct archive *archive)
{
	size_t room = archive->queue_room ? 2 * archive->queue_room : 256;
	struct archive_segment *larger = malloc(room * sizeof(*larger));

	if (!larger)
		return false;
	for (size_t i = 0; i < archive->queue_count; i++)
		larger[i] = archive->queue[(archive->queue_first + i) % archive->queue_room];
	free(archive->queue);
	archive->queue = larger;
	archive->queue_first = 0;
	archive->queue_room = room;
	return true;
}

void archive_count_bytes(struct archive *archive, uint64_t bytes)
{
	archive->disk_bytes += bytes;
	while (archive->disk_bytes > archive->budget.disk_bytes && archive->queue_count)
		remove_oldest(archive);
}

void archive_account(struct archive *archive, const char *process, uint32_t stream,
		     uint64_t sequence, uint64_t bytes, int rule)
{
	struct archive_segment *place;

	if (archive->queue_count == archive->queue_room && !queue_grow(archive))
		return;
	place = &archive->queue[(archive->queue_first + archive->queue_count++) %
				archive->queue_room];
	snprintf(place->process, sizeof(place->process), "%s", process);
	place->stream = stream;
	place->sequence = sequence;
	place->bytes = bytes;
	place->arrived_ns = archive->clock();
	place->rule = rule;
	place->level = 0;
	archive_count_bytes(archive, bytes);
}
