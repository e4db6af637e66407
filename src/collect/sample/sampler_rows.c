/* From the stacks of a process to rows of python.samples. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/schema.h"
#include "collect/host/proc.h"
#include "collect/sample/sampler_inside.h"
#include "record/record.h"

#define STATE_FOR_NS 50000000ull /* an idle thread's state is read again after this time */
#define SHARED_FRAMES 512 /* of a deeper stack nothing is shared */
#define FILES_MOST 256 /* that stay open; the limit of open files is 1024 */
#define FRAMES_OF_WAIT 8 /* the innermost; a queue or a collective operation is among them */

uint32_t sampler_intern(const char *text)
{
	return kymo__intern(text, strlen(text), "", 0, 0, KYMO_SOURCE_PYTHON, 0);
}

static int open_held(struct sampler_inside *inside, pid_t pid, pid_t tid, const char *name)
{
	char path[64];
	int fd;

	if (inside->files >= FILES_MOST)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		inside->files++;
	return fd;
}

void sampler_held_close(struct sampler_inside *inside, int *fd)
{
	if (*fd < 0)
		return;
	close(*fd);
	*fd = -1;
	inside->files--;
}

bool sampler_held_read(struct sampler_inside *inside, int *fd, pid_t pid, pid_t tid,
		       const char *name, char *text, size_t text_bytes)
{
	char path[64];
	ssize_t bytes = -1;

	if (*fd < 0)
		*fd = open_held(inside, pid, tid, name);
	if (*fd >= 0) {
		bytes = pread(*fd, text, text_bytes - 1, 0);
		if (bytes < 0)
			sampler_held_close(inside, fd);
		text[bytes > 0 ? bytes : 0] = '\0';
		return bytes > 0;
	}
	if (inside->files < FILES_MOST)
		return false; /* the thread has ended */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	return proc_read(path, text, text_bytes) > 0;
}

static char read_state(struct sampler_inside *inside, pid_t pid, struct seen_thread *seen)
{
	char text[128] = ""; /* the name has at most 64 bytes */
	const char *end;

	sampler_held_read(inside, &seen->state_fd, pid, seen->tid, "stat", text, sizeof(text));
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : '?';
}

static bool is_wait_for_gil(const struct pystack *stack, const struct wait_sample *wait)
{
	uint64_t futex = wait->call.argument[0];

	for (size_t i = 0; wait->known && i < pystack_gil_count(stack); i++) {
		uint64_t gil = pystack_gil(stack, i);

		if (gil && futex >= gil && futex - gil < (uint64_t)stack->python.layout.gil_size)
			return true;
	}
	return false;
}

static void refine_wait(const struct watched *one, const struct pystack_thread *thread,
			struct wait_sample *wait)
{
	struct wait_frame frames[FRAMES_OF_WAIT];
	size_t count = 0;

	if (wait->answer.kind == WAIT_LOCK && is_wait_for_gil(&one->stack, wait)) {
		wait->answer = (struct wait_answer){ WAIT_GIL, "" };
		return;
	}
	for (; count < thread->frame_count && count < FRAMES_OF_WAIT; count++)
		frames[count] = (struct wait_frame){ thread->frames[count].code->name,
						     thread->frames[count].code->file };
	wait_kind_refine(frames, count, &wait->answer);
}

/* Interns the words only when they change. */
static void name_wait(struct seen_thread *seen)
{
	const struct wait_answer *answer = &seen->wait.answer;

	if (seen->activity && seen->named.kind == answer->kind &&
	    !strcmp(seen->named.target, answer->target))
		return;
	seen->named = *answer;
	seen->activity = sampler_intern(wait_kind_word(answer->kind));
	seen->waits_for = answer->target[0] ? sampler_intern(answer->target) : 0;
}

/* The state of a thread that slept and has the same stack is taken as the same for a while. A
   thread whose instruction changed during the read was running: no file is read. */
static void see_state(struct sampler_inside *inside, struct watched *one,
		      const struct pystack_thread *thread, struct seen_thread *seen, bool same,
		      uint64_t now_ns)
{
	if (same && !thread->ran && seen->state == 'S' && !seen->gil &&
	    now_ns - seen->state_ns < STATE_FOR_NS)
		return;
	seen->state = thread->ran ? 'R' : read_state(inside, one->pid, seen);
	seen->state_ns = now_ns;
	wait_sample_take(&seen->wait, one->pid, seen->tid, seen->state, &one->peers, now_ns);
	refine_wait(one, thread, &seen->wait);
	name_wait(seen);
}

static void write_thread(struct sampler_inside *inside, const struct watched *one,
			 const struct seen_thread *seen, uint64_t ticks, uint32_t cause,
			 uint64_t weight_ns)
{
	struct schema_sample_row row = { .ts_ticks = ticks,
					 .stack = seen->node,
					 .pid = one->pid,
					 .tid = seen->tid,
					 .thread_name = seen->name,
					 .cause = cause,
					 .state = (uint16_t)seen->state,
					 .gil = seen->gil,
					 .weight_ns = weight_ns,
					 .activity = seen->activity,
					 .waits_for = seen->waits_for };

	if (!kymo__append(SCHEMA_SAMPLES, &row))
		inside->stats.rows++;
}

static void name_thread(const struct watched *one, const struct pystack_thread *thread,
			struct seen_thread *seen)
{
	const char *name = thread->name[0]	     ? thread->name
			   : thread->tid == one->pid ? "MainThread"
						     : "";

	if (!strcmp(seen->called, name))
		return;
	snprintf(seen->called, sizeof(seen->called), "%s", name);
	seen->name = sampler_intern(name);
}

static void reset_seen(struct sampler_inside *inside, struct seen_thread *seen, pid_t tid)
{
	sampler_held_close(inside, &seen->state_fd);
	sampler_held_close(inside, &seen->children_fd);
	stacktrie_forget(&seen->path);
	*seen = (struct seen_thread){ .tid = tid, .state_fd = -1, .children_fd = -1 };
}

/* The place of the i-th thread; of another one if threads have started or ended. */
static struct seen_thread *seen_at(struct sampler_inside *inside, struct watched *one, size_t i,
				   pid_t tid)
{
	struct seen_thread *seen;

	while (one->seen_count <= i) {
		if (!grow((void **)&one->seen, &one->seen_room, one->seen_count,
			  sizeof(*one->seen)))
			return NULL;
		one->seen[one->seen_count++] = (struct seen_thread){ .state_fd = -1,
								     .children_fd = -1 };
	}
	seen = &one->seen[i];
	if (seen->tid != tid)
		reset_seen(inside, seen, tid);
	return seen;
}

void sampler_forget_seen(struct sampler_inside *inside, struct watched *one, size_t from)
{
	while (one->seen_count > from)
		reset_seen(inside, &one->seen[--one->seen_count], 0);
}

/* For the native sampler. Partial stacks lack the innermost frames. */
static void share_stack(const struct sampler_inside *inside, const struct pystack_thread *thread,
			uint32_t node, uint64_t now_ns)
{
	struct recent_frame frames[SHARED_FRAMES];
	uint64_t key = intern_hash_number(0, node);

	if (!inside->options.recent || thread->partial || thread->frame_count > SHARED_FRAMES)
		return;
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct pystack_frame *from = &thread->frames[i];

		frames[i] = (struct recent_frame){
			.name = stacktrie_name_of(from->code),
			.line = (uint32_t)from->line,
			.entry = from->entry,
			.frame = from->address,
			.code = from->code_address,
			.instruction = from->instruction,
			.code_end = from->code_address + PYCODE_HEAD_MOST + 2ull * from->code->units
		};
		key = intern_hash_number(intern_hash_number(key, from->address),
					 from->code_address + from->entry);
	}
	recent_stacks_add(inside->options.recent, thread->tid, now_ns, key, frames,
			  thread->frame_count);
}

/* Writes the row of a thread. True if its stack is the one of the last sample. */
static bool sample_thread(struct sampler_inside *inside, struct watched *one, size_t i,
			  uint64_t ticks, uint32_t cause, uint64_t weight_ns)
{
	const struct pystack_thread *thread = &one->stack.threads[i];
	struct seen_thread *seen = seen_at(inside, one, i, thread->tid);
	uint32_t node;
	bool same;

	if (!thread->read || !seen) {
		inside->stats.missed++;
		return false;
	}
	node = stacktrie_add(&inside->trie, thread, &seen->path);
	share_stack(inside, thread, node, inside->read_ns);
	same = seen->state_ns && node == seen->node && seen->gil == thread->gil;
	seen->node = node;
	seen->gil = thread->gil;
	name_thread(one, thread, seen);
	see_state(inside, one, thread, seen, same, clock_monotonic_ns());
	write_thread(inside, one, seen, ticks, cause, weight_ns);
	return same;
}

void sampler_write(struct sampler_inside *inside, struct watched *one, uint64_t ticks,
		   uint32_t cause, uint64_t weight_ns)
{
	bool same = one->seen_count == one->stack.thread_count;

	inside->stats.samples++;
	pystack_name_threads(&one->stack);
	stacktrie_begin(&inside->trie);
	for (size_t i = 0; i < one->stack.thread_count; i++)
		same &= sample_thread(inside, one, i, ticks, cause, weight_ns);
	sampler_forget_seen(inside, one, one->stack.thread_count);
	one->unchanged = same ? one->unchanged + 1 : 0;
}
