/*
 * Threads of one process that wait for each other: the main thread for the thread of backward, a
 * caller for the worker of its collective. No event of a trace names these waits; they are found
 * by time. A leaf is an interval of a thread in which no zone of it begins or ends. If zones of
 * another thread that are outermost there end in a leaf and fill at least a third of it, the
 * thread of the leaf waited for the last of these ends.
 */
#include "tables/critical/critical.h"

#include <stdlib.h>

#include "base/grow.h"

#define LEAF_LEAST_NS 20000

struct leaf {
	int64_t from_ns, to_ns;
};

/* What one thread did in a leaf of the other: its outermost zones, one after another. */
struct group {
	struct leaf leaf;
	int64_t first_ns, last_ns, covered_ns;
	bool any;
};

struct pair {
	struct critical_input *input;
	uint32_t waiter, worker;
	const int64_t *bounds; /* of the waiter's zones, ascending */
	size_t bound_count;
	bool failed;
};

static int compare_times(const void *left, const void *right)
{
	const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

static int64_t *make_bounds(const struct critical_input *input,
			    const struct critical_thread *thread)
{
	int64_t *bounds = malloc(((size_t)thread->zone_count * 2 + 1) * sizeof(*bounds));

	for (uint32_t i = 0; bounds && i < thread->zone_count; i++) {
		bounds[2 * i] = input->zones.list[thread->first + i].start_ns;
		bounds[2 * i + 1] = input->zones.list[thread->first + i].end_ns;
	}
	if (bounds)
		qsort(bounds, (size_t)thread->zone_count * 2, sizeof(*bounds), compare_times);
	return bounds;
}

/* The leaf that the moment ends in or lies in; false before the first bound and after the last. */
static bool leaf_at(const struct pair *pair, int64_t ns, struct leaf *out)
{
	size_t low = 0, high = pair->bound_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pair->bounds[middle] < ns)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || low == pair->bound_count)
		return false;
	*out = (struct leaf){ pair->bounds[low - 1], pair->bounds[low] };
	return true;
}

static bool add_handover(struct critical_input *input, int64_t ns, uint32_t from, uint32_t to,
			 bool waited)
{
	if (!grow((void **)&input->handovers.list, &input->handovers.room, input->handovers.count,
		  sizeof(*input->handovers.list)))
		return false;
	input->handovers.list[input->handovers.count++] = (struct critical_handover){
		.ns = ns, .from = from, .to = to, .waited = waited
	};
	return true;
}

static void end_group(struct pair *pair, struct group *group)
{
	const struct leaf *leaf = &group->leaf;
	const int64_t since = group->first_ns > leaf->from_ns ? group->first_ns : leaf->from_ns;

	if (group->any && leaf->to_ns - leaf->from_ns >= LEAF_LEAST_NS &&
	    group->covered_ns >= (leaf->to_ns - leaf->from_ns) / 3)
		pair->failed |= !add_handover(pair->input, group->first_ns, pair->waiter,
					      pair->worker, false) ||
				!add_handover(pair->input, since, pair->waiter, pair->waiter,
					      false) ||
				!add_handover(pair->input, group->last_ns, pair->worker,
					      pair->waiter, true);
	*group = (struct group){ .any = false };
}

static void add_to_group(struct pair *pair, struct group *group, int64_t start_ns, int64_t end_ns)
{
	struct leaf leaf;

	if (!leaf_at(pair, end_ns, &leaf)) {
		end_group(pair, group);
		return;
	}
	if (group->any && leaf.from_ns != group->leaf.from_ns)
		end_group(pair, group);
	if (!group->any)
		*group = (struct group){ .leaf = leaf, .first_ns = start_ns, .any = true };
	group->last_ns = end_ns;
	group->covered_ns += end_ns - (start_ns > leaf.from_ns ? start_ns : leaf.from_ns);
}

static void find_in_pair(struct pair *pair)
{
	const struct critical_thread *worker = &pair->input->threads.list[pair->worker];
	const struct critical_zone *zones = &pair->input->zones.list[worker->first];
	struct group group = { .any = false };
	int64_t start_ns = 0, end_ns = INT64_MIN;

	for (uint32_t i = 0; i < worker->zone_count && !pair->failed; i++) {
		if (zones[i].start_ns >= end_ns) {
			if (end_ns != INT64_MIN)
				add_to_group(pair, &group, start_ns, end_ns);
			start_ns = zones[i].start_ns;
		}
		end_ns = zones[i].end_ns > end_ns ? zones[i].end_ns : end_ns;
	}
	if (end_ns != INT64_MIN)
		add_to_group(pair, &group, start_ns, end_ns);
	end_group(pair, &group);
}

static bool has_worker(const struct critical_input *input, size_t waiter)
{
	for (size_t i = 0; i < input->threads.count; i++)
		if (i != waiter && input->threads.list[i].zone_count &&
		    input->threads.list[i].process == input->threads.list[waiter].process)
			return true;
	return false;
}

static bool find_of_waiter(struct critical_input *input, uint32_t waiter)
{
	const struct critical_thread *thread = &input->threads.list[waiter];
	int64_t *bounds = make_bounds(input, thread);
	struct pair pair = { .input = input,
			     .waiter = waiter,
			     .bounds = bounds,
			     .bound_count = (size_t)thread->zone_count * 2,
			     .failed = !bounds };

	for (size_t i = 0; i < input->threads.count && !pair.failed; i++) {
		if (i == waiter || !input->threads.list[i].zone_count ||
		    input->threads.list[i].process != thread->process)
			continue;
		pair.worker = (uint32_t)i;
		find_in_pair(&pair);
	}
	free(bounds);
	return !pair.failed;
}

/* Where there are no steps, the host's part of the path begins and ends with the thread's zones. */
static bool add_ends(struct critical_input *input, uint32_t index)
{
	const struct critical_thread *thread = &input->threads.list[index];
	int64_t from_ns, to_ns, end_ns = INT64_MIN;

	if (!thread->zone_count || critical_steps_of(input, thread->process, &from_ns, &to_ns))
		return true;
	for (uint32_t i = 0; i < thread->zone_count; i++) {
		const struct critical_zone *zone = &input->zones.list[thread->first + i];

		end_ns = zone->end_ns > end_ns ? zone->end_ns : end_ns;
	}
	return add_handover(input, input->zones.list[thread->first].start_ns, index, index,
			    false) &&
	       add_handover(input, end_ns, index, index, false);
}

uint32_t critical_main_of(const struct critical_input *input, uint32_t process)
{
	uint32_t found = CRITICAL_NONE, most = 0;

	for (size_t i = 0; i < input->threads.count; i++) {
		const struct critical_thread *thread = &input->threads.list[i];

		if (thread->process == process && thread->drives && thread->zone_count >= most) {
			most = thread->zone_count;
			found = (uint32_t)i;
		}
	}
	return found;
}

uint32_t *critical_find_mains(const struct critical_input *input)
{
	const size_t processes = input->recording->process_count;
	uint32_t *mains = malloc((processes + 1) * sizeof(*mains));

	for (uint32_t i = 0; mains && i < processes; i++)
		mains[i] = critical_main_of(input, i);
	return mains;
}

/* A thread that only runs collectives is idle between them; the main thread starts each. */
static bool add_calls(struct critical_input *input)
{
	uint32_t *mains = critical_find_mains(input);
	bool ok = mains != NULL;

	for (size_t i = 0; ok && i < input->parts.count; i++) {
		const struct critical_part *part = &input->parts.list[i];

		if (part->op != CRITICAL_NONE || input->threads.list[part->thread].drives ||
		    mains[part->process] == CRITICAL_NONE)
			continue;
		ok = add_handover(input, part->start_ns, mains[part->process], part->thread, false);
	}
	free(mains);
	return ok;
}

bool critical_find_handovers(struct critical_input *input)
{
	for (size_t i = 0; i < input->threads.count; i++) {
		struct critical_thread *thread = &input->threads.list[i];

		if (thread->tid == input->recording->processes[thread->process].pid)
			thread->drives = true;
	}
	for (size_t i = 0; i < input->threads.count; i++) {
		const struct critical_thread *thread = &input->threads.list[i];

		if (!thread->drives)
			continue;
		if (thread->zone_count && has_worker(input, i) &&
		    !find_of_waiter(input, (uint32_t)i))
			return false;
		if (!add_ends(input, (uint32_t)i))
			return false;
	}
	return add_calls(input);
}
