/* Per-thread data: created at a thread's first forward or scope, reused by another thread after it
   has ended. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <kymo/atomic.h>

#include "torch.h"

#define GONE_KEPT 8

static pthread_mutex_t lock =
	PTHREAD_MUTEX_INITIALIZER; /* of the list; never held while torch or Python runs */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static struct thread *all; /* append-only: read without the lock */
static __thread struct thread *mine __attribute__((tls_model("initial-exec")));

static void thread_give_back(void *thread)
{
	kymo__store_release(&((struct thread *)thread)->gone, true);
}

static void lock_for_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void thread_begin(void)
{
	pthread_key_create(&key, thread_give_back);
	pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
}

static struct thread *thread_make(void)
{
	struct thread *thread = calloc(1, sizeof(*thread));
	/* Pages are allocated as records are written; the ring is never unmapped, because other
	   threads may be reading it. */
	void *ring = mmap(NULL, RING_RECORDS * sizeof(struct record), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (!thread || ring == MAP_FAILED) {
		if (ring != MAP_FAILED)
			munmap(ring, RING_RECORDS * sizeof(struct record));
		free(thread);
		return NULL;
	}
	thread->ring = ring;
	return thread;
}

/* The one whose thread ended longest ago, if there are enough of them: the backward of a thread's
   modules may run after its end. */
static struct thread *longest_gone(void)
{
	struct thread *oldest = NULL;
	int count = 0;

	for (struct thread *thread = all; thread; thread = thread->next)
		if (kymo__load_acquire(&thread->gone)) {
			oldest = thread; /* the list begins with the newest */
			count++;
		}
	return count > GONE_KEPT ? oldest : NULL;
}

/* Drops the state its thread has left. */
static struct thread *reuse(void)
{
	struct thread *thread = longest_gone(), *next;
	struct record *ring;
	struct op_thread *ops;
	struct stamp last;

	if (!thread)
		return NULL;
	ring = thread->ring;
	ops = thread->ops;
	last = thread->last_stamp; /* owns a reference */
	next = thread->next;
	memset(thread, 0, sizeof(*thread));
	thread->ring = ring;
	thread->ops = ops; /* its window is an earlier one, or its operators have ended */
	thread->last_stamp = last;
	thread->next = next;
	return thread;
}

static struct thread *thread_take(void)
{
	struct thread *thread;

	pthread_once(&once, thread_begin);
	pthread_mutex_lock(&lock);
	thread = reuse();
	if (!thread) {
		thread = thread_make();
		if (thread) {
			thread->next = all;
			kymo__store_release(&all, thread);
		}
	}
	if (thread) {
		thread->phase = -1;
		kymo__store_release(&thread->torch_id,
				    symbols.thread_id ? symbols.thread_id() : UINT64_MAX);
	}
	pthread_mutex_unlock(&lock);
	if (thread)
		pthread_setspecific(key, thread);
	return thread;
}

struct thread *thread_get(void)
{
	if (!mine)
		mine = thread_take();
	return mine;
}

struct thread *thread_of(uint64_t torch_id)
{
	struct thread *thread = kymo__load_acquire(&all);

	while (thread && kymo__load_acquire(&thread->torch_id) != torch_id)
		thread = thread->next;
	return thread;
}
