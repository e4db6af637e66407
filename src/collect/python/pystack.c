#include "collect/python/pystack.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files/paths.h"
#include "base/grow.h"
#include "collect/python/pyimage.h"
#include "collect/native/process_memory.h"

#define TRIES 16
#define THREADS_MOST 65536
#define INTERPRETERS_MOST 64
#define RUNTIME_BYTES 512u /* of _PyRuntime, if the fields that are read lie so close */
#define GIL_BYTES 32u
#define COPIES_BYTES_MOST ((size_t)1 << 30) /* of the stacks of all threads */

struct interpreter {
	uint64_t address;
	uint64_t threads_head; /* as read with the sample */
	size_t thread_count;
	bool cut; /* its list of threads leads back to itself, or is too long */
	uint64_t gil; /* address of its GIL */
	unsigned char gil_bytes[GIL_BYTES];
};

struct pystack_inside {
	struct interpreter interpreters[INTERPRETERS_MOST];
	size_t interpreter_count;
	uint64_t interpreters_head, finalizing;
	struct pyimage **images; /* by thread */
	size_t image_count, image_room;
	struct intern states; /* of the images, while they are listed */
	struct process_memory_batch batch;
	struct pycode_wanted *wanted;
	size_t wanted_count, wanted_room;
	uint64_t *guesses; /* addresses of the code objects of the last stacks */
	size_t guess_count, guess_room;
	size_t guessed; /* of the wanted ones: read with the images */
	bool steady; /* the last stacks were read at the first try */
	int64_t runtime_from; /* the part of _PyRuntime that is read at once; -1: read by field */
	unsigned char runtime[RUNTIME_BYTES];
	bool listed;
};

/* ---- interpreters and threads ---------------------------------------------------------------- */

static uint64_t pointer_at(const struct pystack *stack, uint64_t address, int32_t offset)
{
	return offset < 0 ? 0 : process_memory_pointer(stack->pid, address + (uint64_t)offset);
}

static struct pyimage *image_of(struct pystack_inside *inside, size_t from, uint64_t state)
{
	for (size_t i = from; i < inside->image_count; i++)
		if (inside->images[i]->state == state) {
			struct pyimage *found = inside->images[i];

			inside->images[i] = inside->images[from];
			inside->images[from] = found;
			return found;
		}
	return NULL;
}

/* Puts a known or new thread at index `at`. */
static int place_thread(struct pystack_inside *inside, size_t at, uint64_t state)
{
	struct pyimage *image;

	if (image_of(inside, at, state))
		return 0;
	if (!grow((void **)&inside->images, &inside->image_room, inside->image_count,
		  sizeof(*inside->images)))
		return -ENOMEM;
	image = pyimage_create(state);
	if (!image)
		return -ENOMEM;
	if (at < inside->image_count)
		inside->images[inside->image_count] = inside->images[at];
	inside->image_count++;
	inside->images[at] = image;
	return 0;
}

static bool same_state(const void *images, uint32_t number, const void *state)
{
	return ((struct pyimage *const *)images)[number]->state == *(const uint64_t *)state;
}

/* False: it is in the list already, or no memory. */
static bool is_new_state(struct pystack_inside *inside, uint64_t state)
{
	uint64_t hash = intern_hash_number(0, state);

	return intern_find(&inside->states, hash, same_state, inside->images, &state) ==
		       INTERN_NONE &&
	       intern_add(&inside->states, hash) != INTERN_NONE;
}

static int pystack_list_threads(struct pystack *stack, struct interpreter *interpreter,
				size_t *count)
{
	const struct pylayout *layout = &stack->python.layout;
	uint64_t state = interpreter->threads_head;
	size_t before = *count;
	int rc = 0;

	while (state && !rc && *count < THREADS_MOST && is_new_state(stack->inside, state)) {
		rc = place_thread(stack->inside, *count, state);
		if (!rc)
			(*count)++;
		state = pointer_at(stack, state, layout->thread_next);
	}
	interpreter->thread_count = *count - before;
	interpreter->cut = state != 0;
	stack->cut = stack->cut || interpreter->cut;
	return rc;
}

static bool pystack_is_listed(const struct pystack_inside *inside, uint64_t interpreter)
{
	for (size_t i = 0; i < inside->interpreter_count; i++)
		if (inside->interpreters[i].address == interpreter)
			return true;
	return false;
}

static void forget_threads(struct pystack_inside *inside, size_t from)
{
	while (inside->image_count > from)
		pyimage_destroy(inside->images[--inside->image_count]);
}

static int pystack_list_all(struct pystack *stack)
{
	const struct pylayout *layout = &stack->python.layout;
	struct pystack_inside *inside = stack->inside;
	uint64_t runtime = stack->python.runtime;
	uint64_t at = pointer_at(stack, runtime, layout->runtime_interpreters_head);
	size_t threads = 0;
	int rc = 0;

	inside->interpreter_count = 0;
	intern_clear(&inside->states);
	stack->cut = false;
	while (at && !rc && inside->interpreter_count < INTERPRETERS_MOST &&
	       !pystack_is_listed(inside, at)) {
		struct interpreter *one = &inside->interpreters[inside->interpreter_count++];

		one->address = at;
		one->threads_head = pointer_at(stack, at, layout->interp_threads_head);
		one->gil = layout->runtime_gil >= 0 ? runtime + (uint64_t)layout->runtime_gil
						    : pointer_at(stack, at, layout->interp_gil);
		rc = pystack_list_threads(stack, one, &threads);
		at = pointer_at(stack, at, layout->interp_next);
	}
	forget_threads(inside, threads);
	stack->cut = stack->cut || at;
	inside->listed = true;
	return rc ? rc : threads ? 0 : -EAGAIN;
}

/* True if the lists read with the sample are the known ones. */
static bool is_list_right(const struct pystack *stack)
{
	const struct pystack_inside *inside = stack->inside;
	int32_t next_at = stack->python.layout.thread_next;
	size_t at = 0;

	if (!inside->interpreter_count ||
	    inside->interpreters_head != inside->interpreters[0].address)
		return false;
	for (size_t i = 0; i < inside->interpreter_count; i++) {
		const struct interpreter *one = &inside->interpreters[i];
		const size_t end = one->cut ? at + one->thread_count : SIZE_MAX;

		for (uint64_t state = one->threads_head; state && at < end; at++) {
			if (at >= inside->image_count || inside->images[at]->state != state)
				return false;
			state = process_memory_word(inside->images[at]->head, next_at);
		}
	}
	return at == inside->image_count;
}

/* ---- the process ----------------------------------------------------------------------------- */

/* Fields of _PyRuntime: in one part of the batch, if they lie close together. */
static void add_runtime(struct pystack *stack)
{
	const struct pylayout *layout = &stack->python.layout;
	struct pystack_inside *inside = stack->inside;
	int64_t head = layout->runtime_interpreters_head, finalizing = layout->runtime_finalizing;
	int64_t from = head < finalizing ? head : finalizing;
	int64_t end = (head > finalizing ? head : finalizing) + 8;

	if (layout->runtime_gil >= 0 && layout->runtime_gil < from)
		from = layout->runtime_gil;
	if (layout->runtime_gil >= 0 && layout->runtime_gil + (int64_t)GIL_BYTES > end)
		end = layout->runtime_gil + (int64_t)GIL_BYTES;
	inside->runtime_from = from >= 0 && end - from <= (int64_t)RUNTIME_BYTES ? from : -1;
	if (inside->runtime_from >= 0) {
		process_memory_batch_add(&inside->batch, stack->python.runtime + (uint64_t)from,
					 inside->runtime, (size_t)(end - from));
		return;
	}
	process_memory_batch_add(&inside->batch, stack->python.runtime + (uint64_t)head,
				 &inside->interpreters_head, 8);
	process_memory_batch_add(&inside->batch, stack->python.runtime + (uint64_t)finalizing,
				 &inside->finalizing, 8);
}

static bool is_gil_of_runtime(const struct pystack *stack)
{
	return stack->inside->runtime_from >= 0 && stack->python.layout.runtime_gil >= 0;
}

static void take_runtime(struct pystack *stack)
{
	const struct pylayout *layout = &stack->python.layout;
	struct pystack_inside *inside = stack->inside;
	int32_t from = (int32_t)inside->runtime_from;

	if (from < 0)
		return;
	inside->interpreters_head = process_memory_word(inside->runtime,
							layout->runtime_interpreters_head - from);
	inside->finalizing = process_memory_word(inside->runtime,
						 layout->runtime_finalizing - from);
	for (size_t i = 0; is_gil_of_runtime(stack) && i < inside->interpreter_count; i++)
		memcpy(inside->interpreters[i].gil_bytes,
		       inside->runtime + (layout->runtime_gil - from), GIL_BYTES);
}

static void pystack_add_process(struct pystack *stack)
{
	const struct pylayout *layout = &stack->python.layout;
	struct pystack_inside *inside = stack->inside;

	add_runtime(stack);
	for (size_t i = 0; i < inside->interpreter_count; i++) {
		struct interpreter *one = &inside->interpreters[i];

		process_memory_batch_add(&inside->batch,
					 one->address + (uint64_t)layout->interp_threads_head,
					 &one->threads_head, 8);
		if (one->gil && !is_gil_of_runtime(stack))
			process_memory_batch_add(&inside->batch, one->gil, one->gil_bytes,
						 sizeof(one->gil_bytes));
	}
}

/* ---- code objects ---------------------------------------------------------------------------- */

/* Those of the last stacks are read after the copies, in the same system call. A program that
   calls too fast for one try gets no guesses: each try would read them. */
static bool add_guesses(struct pystack *stack)
{
	struct pystack_inside *inside = stack->inside;
	size_t bytes = pycode_head_bytes(&stack->python.layout);

	inside->wanted_count = inside->guessed = 0;
	for (size_t i = 0; inside->steady && i < inside->guess_count; i++) {
		if (!grow((void **)&inside->wanted, &inside->wanted_room, i,
			  sizeof(*inside->wanted)))
			return false;
		inside->wanted[i].address = inside->guesses[i];
		inside->wanted[i].used = false;
		inside->wanted_count = inside->guessed = i + 1;
	}
	for (size_t i = 0; i < inside->guessed; i++) /* the list does not move any more */
		if (!process_memory_batch_add(&inside->batch, inside->wanted[i].address,
					      inside->wanted[i].head, bytes))
			return false;
	return true;
}

/* A guess that cannot be read is none. */
static void take_guesses(struct pystack_inside *inside)
{
	const struct process_memory_part *parts = inside->batch.parts +
						  (inside->batch.count - inside->guessed);

	for (size_t i = 0; i < inside->guessed; i++)
		if (!parts[i].ok)
			inside->wanted[i].address = 0;
}

/* Code objects of the walked stacks that were not guessed. Each is read once. */
static int want_codes(struct pystack *stack)
{
	struct pystack_inside *inside = stack->inside;
	size_t bytes = pycode_head_bytes(&stack->python.layout);

	for (size_t i = 0; i < inside->image_count; i++)
		if (!inside->images[i]->done && inside->images[i]->walked &&
		    !pyimage_want(inside->images[i], inside->guessed, &inside->wanted,
				  &inside->wanted_count, &inside->wanted_room))
			return -ENOMEM;
	process_memory_batch_clear(&inside->batch);
	for (size_t i = inside->guessed; i < inside->wanted_count; i++)
		if (!process_memory_batch_add(&inside->batch, inside->wanted[i].address,
					      inside->wanted[i].head, bytes))
			return -ENOMEM;
	return process_memory_batch_read(&inside->batch, stack->pid);
}

static int resolve_codes(struct pystack *stack, uint64_t now_ns)
{
	struct pystack_inside *inside = stack->inside;
	int rc = want_codes(stack);

	if (rc)
		return rc;
	for (size_t i = inside->guessed; i < inside->wanted_count; i++)
		if (!inside->batch.parts[i - inside->guessed].ok)
			inside->wanted[i].address = 0;
	pycode_resolve(&stack->codes, &stack->memory, inside->wanted, inside->wanted_count, now_ns);
	for (size_t i = 0; i < inside->image_count; i++) {
		struct pyimage *image = inside->images[i];

		if (!image->done && image->walked)
			image->done = pyimage_settle(image, &stack->python.layout, inside->wanted);
		if (!image->done)
			stack->stats.again++;
	}
	return 0;
}

/* For the next sample, if the stacks have other code objects than expected. */
static void guess_again(struct pystack_inside *inside)
{
	bool off = false;

	for (size_t i = 0; i < inside->image_count; i++) {
		off |= inside->images[i]->off_hints;
		inside->images[i]->off_hints = false;
	}
	if (!off)
		return;
	inside->guess_count = 0;
	for (size_t i = 0; i < inside->image_count; i++)
		pyimage_guess(inside->images[i], &inside->guesses, &inside->guess_count,
			      &inside->guess_room);
}

/* ---- one try --------------------------------------------------------------------------------- */

/* Reads and checks the remaining threads. False: the list of threads has changed. */
static int read_images(struct pystack *stack, bool *out_list_right)
{
	struct pystack_inside *inside = stack->inside;
	size_t room = COPIES_BYTES_MOST;
	int rc;

	process_memory_batch_clear(&inside->batch);
	pystack_add_process(stack);
	for (size_t i = 0; i < inside->image_count; i++)
		if (!inside->images[i]->done &&
		    !pyimage_add(inside->images[i], &stack->memory, &inside->batch, &room))
			return -ENOMEM;
	if (!add_guesses(stack))
		return -ENOMEM;
	rc = process_memory_batch_read(&inside->batch, stack->pid);
	if (!rc && !inside->batch.parts[0].ok)
		rc = -EFAULT; /* another program after an exec */
	if (rc)
		return rc;
	take_runtime(stack);
	take_guesses(inside);
	*out_list_right = is_list_right(stack);
	return 0;
}

static bool all_done(const struct pystack_inside *inside)
{
	for (size_t i = 0; i < inside->image_count; i++)
		if (!inside->images[i]->done)
			return false;
	return true;
}

static int try_once(struct pystack *stack, uint64_t now_ns)
{
	struct pystack_inside *inside = stack->inside;
	bool right;
	int rc = inside->listed ? 0 : pystack_list_all(stack);

	if (!rc)
		rc = read_images(stack, &right);
	if (rc)
		return rc;
	if (!right) {
		inside->listed = false;
		return 0;
	}
	for (size_t i = 0; i < inside->image_count; i++)
		if (!inside->images[i]->done)
			pyimage_walk(inside->images[i], &stack->memory);
	return resolve_codes(stack, now_ns);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static bool holds_gil(const struct pystack *stack, const struct pyimage *image)
{
	const struct pylayout *layout = &stack->python.layout;

	for (size_t i = 0; i < stack->inside->interpreter_count; i++) {
		const struct interpreter *one = &stack->inside->interpreters[i];
		int32_t locked;

		memcpy(&locked, one->gil_bytes + layout->gil_locked, 4);
		if (one->gil && locked > 0 &&
		    process_memory_word(one->gil_bytes, layout->gil_last_holder) == image->state)
			return true;
	}
	return false;
}

static int pystack_fill_threads(struct pystack *stack)
{
	struct pystack_inside *inside = stack->inside;
	const struct pylayout *layout = &stack->python.layout;
	struct pystack_thread *threads = realloc(stack->threads,
						 (inside->image_count + 1) * sizeof(*threads));

	if (!threads)
		return -ENOMEM;
	stack->threads = threads;
	stack->thread_count = inside->image_count;
	for (size_t i = 0; i < inside->image_count; i++) {
		struct pyimage *image = inside->images[i];
		struct pystack_thread *thread = &threads[i];

		memset(thread, 0, sizeof(*thread));
		thread->state = image->state;
		thread->ident = process_memory_word(image->head, layout->thread_id);
		thread->tid = (pid_t)process_memory_word(image->head, layout->thread_native_id);
		thread->gil = holds_gil(stack, image);
		thread->read = image->done;
		thread->partial = image->done && image->partial;
		thread->ran = image->done && (image->ran || image->partial);
		thread->frames = image->frames;
		thread->frame_count = image->done ? image->frame_count : 0;
		memcpy(thread->name, image->name, sizeof(thread->name));
		*(image->done ? &stack->stats.threads : &stack->stats.missed) += 1;
		stack->stats.partial += thread->partial;
	}
	return 0;
}

static int pystack_failed(struct pystack *stack, int rc, struct kymo_error *err)
{
	if (rc == -EAGAIN)
		return error_set(err, EAGAIN,
				 "the Python of process %d is not initialised yet or has ended",
				 (int)stack->pid);
	if (rc == -ENOMEM)
		return error_set(err, ENOMEM, "out of memory for process %d", (int)stack->pid);
	return process_memory_refused(err, stack->pid, -rc);
}

/* Polling a pidfd is cheap; without one the start time is compared. */
static bool pystack_has_ended(const struct pystack *stack)
{
	struct pollfd fd = { .fd = stack->process_fd, .events = POLLIN };

	if (stack->process_fd >= 0)
		return poll(&fd, 1, 0) > 0;
	return paths_starttime(stack->pid) != stack->starttime;
}

int pystack_read(struct pystack *stack, struct kymo_error *err)
{
	struct pystack_inside *inside = stack->inside;
	uint64_t now_ns = clock_monotonic_ns();
	int rc = 0, tries = 0;

	pycode_forget(&stack->codes);
	for (size_t i = 0; i < inside->image_count; i++) {
		struct pyimage *image = inside->images[i];

		/* regions of a failed thread are searched again */
		image->known = image->known && image->done;
		image->done = false;
		image->tries = 0;
	}
	for (; tries < TRIES && !rc; tries++) {
		rc = try_once(stack, now_ns);
		inside->steady = !tries && inside->listed && all_done(inside);
		if (!rc && inside->listed && all_done(inside))
			break;
	}
	guess_again(inside);
	stack->stats.samples++;
	stack->stats.calls = inside->batch.calls;
	stack->finalizing = inside->finalizing != 0;
	if (rc == -ETIMEDOUT && inside->image_count)
		rc = 0; /* what was read so far */
	if (pystack_has_ended(stack))
		rc = -ESRCH;
	if (!rc)
		rc = pystack_fill_threads(stack);
	return rc ? pystack_failed(stack, rc, err) : 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct naming {
	struct pystack *stack;
	size_t left;
};

/* An entry of threading._active: its key is the ident. */
static bool name_one(void *context, uint64_t key, uint64_t value)
{
	struct naming *naming = context;
	struct pystack *stack = naming->stack;
	uint64_t ident = 0, text;
	struct buf number = { 0 };

	pyobj_repr(&stack->memory, key, &number, 32);
	ident = strtoull(buf_get(&number), NULL, 10);
	buf_fini(&number);
	for (size_t i = 0; i < stack->thread_count; i++) {
		struct pystack_thread *thread = &stack->threads[i];
		struct pyimage *image = stack->inside->images[i];

		if (thread->ident != ident || image->name[0])
			continue;
		text = pyobj_attribute(&stack->memory, value, "_name");
		if (text && pyobj_text(&stack->memory, text, image->name, sizeof(image->name)) > 0)
			memcpy(thread->name, image->name, sizeof(thread->name));
		naming->left--;
	}
	return naming->left > 0 && !process_memory_late();
}

static void name_by(struct naming *naming, uint64_t interpreter)
{
	struct pystack *stack = naming->stack;
	uint64_t modules = pointer_at(stack, interpreter, stack->python.layout.interp_modules);
	uint64_t module = pyobj_dict_get(&stack->memory, modules, "threading");
	uint64_t dict = module ? pointer_at(stack, module, stack->python.layout.module_dict) : 0;
	uint64_t active = dict ? pyobj_dict_get(&stack->memory, dict, "_active") : 0;

	if (active)
		pyobj_dict_each(&stack->memory, active, name_one, naming);
}

void pystack_name_threads(struct pystack *stack)
{
	struct naming naming = { stack, 0 };

	for (size_t i = 0; i < stack->thread_count; i++)
		if (!stack->inside->images[i]->name[0] &&
		    stack->inside->images[i]->name_tries < 3) {
			stack->inside->images[i]->name_tries++;
			naming.left++;
		}
	for (size_t i = 0; naming.left && i < stack->inside->interpreter_count; i++)
		name_by(&naming, stack->inside->interpreters[i].address);
}

size_t pystack_gil_count(const struct pystack *stack)
{
	return stack->inside ? stack->inside->interpreter_count : 0;
}

uint64_t pystack_gil(const struct pystack *stack, size_t at)
{
	return stack->inside->interpreters[at].gil;
}

size_t pystack_interpreter_count(const struct pystack *stack)
{
	return pystack_gil_count(stack);
}

uint64_t pystack_interpreter(const struct pystack *stack, size_t at)
{
	return stack->inside->interpreters[at].address;
}

/* ---- open and close -------------------------------------------------------------------------- */

int pystack_open(struct pystack *stack, pid_t pid, struct kymo_error *err)
{
	int rc;

	memset(stack, 0, sizeof(*stack));
	stack->pid = pid;
	stack->process_fd = (int)syscall(SYS_pidfd_open, pid, 0);
	stack->starttime = paths_starttime(pid);
	if (!stack->starttime)
		return process_memory_refused(err, pid, ESRCH);
	rc = pyfind_process(pid, &stack->python, err);
	if (rc)
		return rc;
	stack->memory = (struct pymemory){ pid, &stack->python.layout };
	stack->inside = calloc(1, sizeof(*stack->inside));
	return stack->inside ? 0 : error_set(err, ENOMEM, "out of memory for process %d", (int)pid);
}

void pystack_close(struct pystack *stack)
{
	if (stack->inside) {
		forget_threads(stack->inside, 0);
		free(stack->inside->images);
		free(stack->inside->wanted);
		free(stack->inside->guesses);
		intern_fini(&stack->inside->states);
		process_memory_batch_fini(&stack->inside->batch);
		free(stack->inside);
	}
	pycode_fini(&stack->codes);
	free(stack->threads);
	if (stack->pid && stack->process_fd >= 0)
		close(stack->process_fd);
	memset(stack, 0, sizeof(*stack));
}
