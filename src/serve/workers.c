/* Threads that answer requests: some for fast ones, others for slow ones and for queries of
   clients, which mostly wait for a child. */
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "serve/serve_inside.h"

#define WAITING_MOST 256
#define SLOW_WAITING_MOST 32
#define SLOW_NICE 4 /* niceness of the slow ones */

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct request *first, *last;
	size_t count, most, threads;
};

#define QUEUE(most, threads) \
	{ \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL, 0, most, threads \
	}
static struct queue queues[WORKERS_KINDS] = {
	[WORKERS_FAST] = QUEUE(WAITING_MOST, 6),
	[WORKERS_SLOW] = QUEUE(SLOW_WAITING_MOST, 3),
	[WORKERS_QUERIES] = QUEUE(SLOW_WAITING_MOST, 4),
};

static struct request *workers_take(struct queue *queue)
{
	struct request *request;

	pthread_mutex_lock(&queue->lock);
	while (!queue->first)
		pthread_cond_wait(&queue->some, &queue->lock);
	request = queue->first;
	queue->first = request->next;
	queue->count--;
	pthread_mutex_unlock(&queue->lock);
	return request;
}

void workers_yield(void)
{
	/* Applies to this thread and to the commands that it starts. */
	id_t self = (id_t)gettid();

	setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + SLOW_NICE);
}

static void *work(void *context)
{
	if (context != &queues[WORKERS_FAST])
		workers_yield();
	for (;;) {
		struct request *request = workers_take(context);

		request->route->answer(request);
		if (request->answer.failed)
			answer_error(request, 503, "request less", "out of memory for the answer");
		http_resume(request);
	}
	return NULL;
}

int workers_start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int rc = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (size_t kind = 0; kind < WORKERS_KINDS; kind++)
		for (size_t i = 0; i < queues[kind].threads && !rc; i++)
			rc = pthread_create(&thread, &attributes, work, &queues[kind]);
	pthread_attr_destroy(&attributes);
	return -rc;
}

bool workers_add(struct request *request)
{
	struct queue *queue = &queues[request->route->workers];
	bool room;

	request->next = NULL;
	pthread_mutex_lock(&queue->lock);
	room = queue->count < queue->most;
	if (room) {
		if (queue->first)
			queue->last->next = request;
		else
			queue->first = request;
		queue->last = request;
		queue->count++;
		pthread_cond_signal(&queue->some);
	}
	pthread_mutex_unlock(&queue->lock);
	return room;
}

bool workers_take_back(struct request *request)
{
	struct queue *queue = &queues[request->route->workers];
	struct request *before = NULL, *at;

	pthread_mutex_lock(&queue->lock);
	for (at = queue->first; at && at != request; at = at->next)
		before = at;
	if (at) {
		if (before)
			before->next = at->next;
		else
			queue->first = at->next;
		if (queue->last == at)
			queue->last = before;
		queue->count--;
	}
	pthread_mutex_unlock(&queue->lock);
	return at;
}
