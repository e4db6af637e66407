#include "cmds/run/run_trigger.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "cmds/cmds.h"
#include "cmds/trigger/trigger_start.h"
#include "collect/say.h"

#define END_MS 5000 /* for the last snapshot */

int run_trigger_add(struct run_trigger *run, const char *word)
{
	struct kymo_error err = { 0 };

	return trigger_add(&run->set, word, &err) ? -1
						  : cmds_wrong("run", "--trigger: %s", err.text);
}

int run_trigger_file(struct run_trigger *run, const char *path)
{
	struct kymo_error err = { 0 };

	return trigger_read_file(&run->set, path, &err)
		       ? cmds_wrong("run", "--triggers: %s", err.text)
		       : -1;
}

int run_trigger_action(struct run_trigger *run, const char *action)
{
	if (run->action_count == TRIGGER_ACTIONS)
		return cmds_wrong("run", "--action: at most %d", TRIGGER_ACTIONS);
	run->actions[run->action_count++] = action;
	return -1;
}

/* Triggers of a file may have actions of their own. */
static int give_actions(struct run_trigger *run, struct kymo_error *err)
{
	for (size_t i = 0; i < run->set.count; i++) {
		struct trigger *trigger = &run->set.triggers[i];

		if (trigger->action_count)
			continue;
		for (size_t k = 0; k < run->action_count; k++)
			if (trigger_add_action(trigger, run->actions[k], err))
				return -EINVAL;
	}
	trigger_complete(&run->set);
	return 0;
}

int run_trigger_ready(struct run_trigger *run)
{
	struct kymo_error err = { 0 };

	if (run->action_count && !run->set.count)
		return cmds_wrong("run", "--action belongs to --trigger, and there is none");
	if (give_actions(run, &err))
		return cmds_wrong("run", "--action: %s", err.text);
	if (run->set.count && trigger_check_all(&run->set, &err))
		return cmds_wrong("run", "--trigger: %s", err.text);
	return -1;
}

void run_trigger_started(void *context, const char *live)
{
	struct run_trigger *run = context;
	struct kymo_error err = { 0 };

	if (!run->set.count)
		return;
	if (trigger_write_file(&run->set, live, &err) ||
	    trigger_start(live, false, &run->watcher, &err))
		say("triggers are not watched: %s", err.text);
}

/* The watcher writes what is left; one that does not end is killed, and loses that. */
void run_trigger_ended(void *context)
{
	const struct timespec pause = { 0, 5000000 };
	struct run_trigger *run = context;

	if (run->watcher <= 0)
		return;
	kill(run->watcher, SIGTERM);
	for (int waited = 0; waited < END_MS; waited += 5) {
		if (waitpid(run->watcher, NULL, WNOHANG) == run->watcher)
			return;
		nanosleep(&pause, NULL);
	}
	kill(run->watcher, SIGKILL);
	while (waitpid(run->watcher, NULL, 0) < 0 && errno == EINTR)
		;
}

void run_trigger_fini(struct run_trigger *run)
{
	trigger_set_fini(&run->set);
}
