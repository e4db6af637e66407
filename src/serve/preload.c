/* Reads the zones and the document of recordings named on the command line while the browser
   starts. */
#include "serve/children/children.h"
#include "serve/serve_inside.h"

static void *preload_prepare(void *context)
{
	struct serve *serve = context;
	struct target *target = targets_find(&serve->targets, NULL);
	struct kymo_error err = { 0 };

	/* The steps of all ranks of a job keep every core busy: what runs SQL starts after them. */
	if (!target || target->entry.kind != STORE_JOB)
		children_prepare();
	/* Errors are ignored: the request itself will report them. */
	if (target && target->named && !target_look(target, 0, NULL, &err)) {
		children_prepare();
		run_prepare_first(target);
		target_look_devices(target, true);
		workers_yield();
		run_prepare(target);
	}
	return NULL;
}

int preload_start(struct serve *serve)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int rc;

	/* Without names no list is made: it would be served for a moment, without programs that
	   have started since. */
	if (!serve->targets.named_count)
		return 0;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attributes, preload_prepare, serve);
	pthread_attr_destroy(&attributes);
	return -rc;
}
