#include "collect/recent_stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/intern.h"

#define SPANS 256 /* of a thread: a quarter of a second at the fastest, if every stack differs */
#define THREADS_MOST 4096
#define FRAMES_MOST 512 /* of a stack; a deeper one is not merged */
/* A longer pause between two samples says nothing of the time between them. */
#define GAP_MOST_NS 110000000ull
#define KNOWN_NS 2000000000ull
#define ENDED_NS 10000000000ull /* a thread without a stack for so long has most likely ended */

struct recent_span {
	uint64_t first_ns, last_ns, key;
	struct recent_frame *frames;
	size_t count;
};

struct recent_thread {
	pid_t tid;
	struct recent_span spans[SPANS];
	size_t next, count;
};

/* A function at a place of the data stack, with the callers that it was seen with. */
struct recent_chain {
	uint64_t function; /* 0: free */
	uint64_t callers;
	bool ambiguous;
};
#define CHAINS (1u << 16)
#define CHAINS_MOST (CHAINS / 4 * 3)

struct recent_stacks {
	pthread_mutex_t lock;
	struct recent_chain *chains;
	size_t chain_count;
	struct recent_thread **threads;
	size_t thread_count, thread_room;
};

struct recent_stacks *recent_stacks_create(void)
{
	struct recent_stacks *recent = calloc(1, sizeof(*recent));

	if (recent)
		recent->chains = calloc(CHAINS, sizeof(*recent->chains));
	if (!recent || !recent->chains) {
		free(recent);
		return NULL;
	}
	pthread_mutex_init(&recent->lock, NULL);
	return recent;
}

void recent_stacks_destroy(struct recent_stacks *recent)
{
	if (!recent)
		return;
	for (size_t i = 0; i < recent->thread_count; i++) {
		for (size_t k = 0; k < SPANS; k++)
			free(recent->threads[i]->spans[k].frames);
		free(recent->threads[i]);
	}
	free(recent->threads);
	free(recent->chains);
	pthread_mutex_destroy(&recent->lock);
	free(recent);
}

static struct recent_thread *recent_stacks_find_thread(struct recent_stacks *recent, pid_t tid)
{
	for (size_t i = 0; i < recent->thread_count; i++)
		if (recent->threads[i]->tid == tid)
			return recent->threads[i];
	return NULL;
}

static struct recent_span *last_span(struct recent_thread *thread)
{
	return thread->count ? &thread->spans[(thread->next + SPANS - 1) % SPANS] : NULL;
}

/* The place of a thread that has ended; NULL: none. */
static struct recent_thread *take_ended(struct recent_stacks *recent, uint64_t at_ns)
{
	for (size_t i = 0; i < recent->thread_count; i++) {
		struct recent_thread *thread = recent->threads[i];
		const struct recent_span *last = last_span(thread);

		if (last && last->last_ns + ENDED_NS > at_ns)
			continue;
		for (size_t k = 0; k < SPANS; k++)
			free(thread->spans[k].frames);
		memset(thread, 0, sizeof(*thread));
		return thread;
	}
	return NULL;
}

static struct recent_thread *recent_stacks_add_thread(struct recent_stacks *recent, pid_t tid,
						      uint64_t at_ns)
{
	struct recent_thread *thread = take_ended(recent, at_ns);

	if (!thread && (recent->thread_count >= THREADS_MOST ||
			!grow((void **)&recent->threads, &recent->thread_room, recent->thread_count,
			      sizeof(thread))))
		return NULL;
	if (!thread) {
		thread = calloc(1, sizeof(*thread));
		if (!thread)
			return NULL;
		recent->threads[recent->thread_count++] = thread;
	}
	thread->tid = tid;
	return thread;
}

/* ---- callers --------------------------------------------------------------------------------- */

static uint64_t function_key(pid_t tid, const struct recent_frame *frame)
{
	uint64_t function = intern_hash_number(
		intern_hash_number(intern_hash_number(0, (uint64_t)tid), frame->code),
		frame->frame);

	return function + !function;
}

/* The slot of a function, or a free one. */
static struct recent_chain *chain_of(struct recent_stacks *recent, pid_t tid,
				     const struct recent_frame *frame)
{
	uint64_t function = function_key(tid, frame);
	size_t at;

	for (at = function % CHAINS; recent->chains[at].function; at = (at + 1) % CHAINS)
		if (recent->chains[at].function == function)
			return &recent->chains[at];
	return recent->chain_count < CHAINS_MOST ? &recent->chains[at] : NULL;
}

/* Learns the callers of the innermost function of each part between two calls from C. */
static void learn_callers(struct recent_stacks *recent, pid_t tid,
			  const struct recent_frame *frames, size_t count)
{
	for (size_t i = 0; i < count;) {
		struct recent_chain *chain = chain_of(recent, tid, &frames[i]);
		size_t innermost = i;
		uint64_t callers = 1;

		for (; i < count && !frames[i].entry; i++)
			if (i + 1 < count)
				callers = intern_hash_number(callers,
							     (uint64_t)frames[i + 1].name << 32 |
								     frames[i + 1].line);
		i++;
		if (!chain)
			continue;
		if (!chain->function) {
			chain->function = function_key(tid, &frames[innermost]);
			chain->callers = callers;
			recent->chain_count++;
		} else if (chain->callers != callers) {
			chain->ambiguous = true;
		}
	}
}

/* The table is full, as after hours: it begins anew with the stacks that the threads have now. */
static void forget_callers(struct recent_stacks *recent)
{
	memset(recent->chains, 0, CHAINS * sizeof(*recent->chains));
	recent->chain_count = 0;
	for (size_t i = 0; i < recent->thread_count; i++) {
		struct recent_thread *thread = recent->threads[i];
		const struct recent_span *last = last_span(thread);

		if (last)
			learn_callers(recent, thread->tid, last->frames, last->count);
	}
}

static bool is_ambiguous(struct recent_stacks *recent, pid_t tid, const struct recent_frame *frames,
			 size_t count)
{
	bool innermost = true;

	for (size_t i = 0; i < count; i++) {
		const struct recent_chain *chain = innermost ? chain_of(recent, tid, &frames[i])
							     : NULL;

		/* Where the table is full, nothing is known. */
		if (innermost && (!chain || !chain->function || chain->ambiguous))
			return true;
		innermost = frames[i].entry;
	}
	return false;
}

/* ---- spans ----------------------------------------------------------------------------------- */

static void begin_span(struct recent_thread *thread, uint64_t at_ns, uint64_t key,
		       const struct recent_frame *frames, size_t count)
{
	struct recent_span *span = &thread->spans[thread->next];
	struct recent_frame *copy = count && count <= FRAMES_MOST
					    ? reallocarray(span->frames, count, sizeof(*copy))
					    : NULL;

	if (copy) {
		span->frames = copy;
		memcpy(copy, frames, count * sizeof(*copy));
	}
	span->first_ns = span->last_ns = at_ns;
	span->key = key;
	span->count = copy ? count : 0;
	thread->next = (thread->next + 1) % SPANS;
	thread->count += thread->count < SPANS;
}

void recent_stacks_add(struct recent_stacks *recent, pid_t tid, uint64_t at_ns, uint64_t key,
		       const struct recent_frame *frames, size_t count)
{
	struct recent_thread *thread;
	struct recent_span *last;

	pthread_mutex_lock(&recent->lock);
	thread = recent_stacks_find_thread(recent, tid);
	if (!thread)
		thread = recent_stacks_add_thread(recent, tid, at_ns);
	last = thread ? last_span(thread) : NULL;
	if (last && last->key == key && last->count == count && at_ns >= last->last_ns &&
	    at_ns - last->last_ns <= GAP_MOST_NS) {
		last->last_ns = at_ns;
	} else if (thread) {
		begin_span(thread, at_ns, key, frames, count);
		if (recent->chain_count >= CHAINS_MOST)
			forget_callers(recent);
		learn_callers(recent, tid, frames, count);
	}
	pthread_mutex_unlock(&recent->lock);
}

bool recent_stacks_knows(struct recent_stacks *recent, pid_t tid, uint64_t now_ns)
{
	struct recent_thread *thread;
	const struct recent_span *last;
	bool known;

	pthread_mutex_lock(&recent->lock);
	thread = recent_stacks_find_thread(recent, tid);
	last = thread ? last_span(thread) : NULL;
	known = last && last->count && last->last_ns + KNOWN_NS > now_ns;
	pthread_mutex_unlock(&recent->lock);
	return known;
}

size_t recent_stacks_at(struct recent_stacks *recent, pid_t tid, uint64_t at_ns,
			struct recent_frame *out, size_t most)
{
	const struct recent_thread *thread;
	size_t found = 0;

	pthread_mutex_lock(&recent->lock);
	thread = recent_stacks_find_thread(recent, tid);
	for (size_t i = 0; thread && i < thread->count && !found; i++) {
		const struct recent_span *span =
			&thread->spans[(thread->next + SPANS - 1 - i) % SPANS];

		if (at_ns < span->first_ns || at_ns > span->last_ns)
			continue;
		found = is_ambiguous(recent, tid, span->frames, span->count) ? 0 : span->count;
		if (found)
			memcpy(out, span->frames, (found < most ? found : most) * sizeof(*out));
		break;
	}
	pthread_mutex_unlock(&recent->lock);
	return found;
}
