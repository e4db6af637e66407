/* Which segments stay on disk: within the budget, and as the rules of --keep say. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collect/move/archive_inside.h"

#define EXPIRE_NS 5000000000ull /* between two looks at the rules */

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
	return segment->rule >= 0 && archive->keep.list[segment->rule].all;
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

void archive_expire(struct archive *archive)
{
	uint64_t now_ns = archive->clock();
	uint64_t bytes[KEEP_RULES_MOST] = { 0 };
	size_t left = 0;

	if (!archive->keep.count || now_ns - archive->expired_ns < EXPIRE_NS)
		return;
	archive->expired_ns = now_ns;
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
	archive_count_bytes(archive, bytes);
}
