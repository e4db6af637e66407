#include "cmds/config_memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "record/device/adapter.h"

bool config_memory_is(const struct settings_key *key)
{
	return !strcmp(key->name, "memory");
}

const char *config_memory_exact(const char *word)
{
	if (!strcasecmp(word, "exact"))
		return "on";
	return !strcasecmp(word, "sampled") ? "off" : NULL;
}

bool config_memory_hears(const struct kymo_control *control)
{
	return control->memory_heard & (KYMO_HEARD_PRELOADED | KYMO_HEARD_POLLED) &&
	       !(control->memory_heard & KYMO_HEARD_REFUSED);
}

bool config_memory_has_followed(const struct kymo_control *control)
{
	return kymo__memory_wanted(control->on) == control->memory_followed;
}

int config_memory_refuse(const struct kymo_control *control, struct kymo_error *err)
{
	if (control->memory_heard & KYMO_HEARD_REFUSED)
		return error_set(err, ENOTSUP,
				 "pid %d tried to watch its allocations and cannot: "
				 "libkymo_memory.so.0 is not beside its libkymo.so, or its C "
				 "library is not glibc; kymo run --memory starts it with one",
				 control->pid);
	return error_set(
		err, ENOTSUP,
		"pid %d cannot watch its allocations from now on: it was started without kymo's "
		"memory library, and never calls kymo_poll(), where that is loaded; kymo run "
		"--memory=off -- … starts it so that memory=on works at any time",
		control->pid);
}

void config_memory_say_when(const struct kymo_control *control)
{
	fprintf(stderr, "kymo: pid %d has not done so yet; it will at its next %s\n", control->pid,
		control->memory_heard & KYMO_HEARD_PRELOADED
			? "allocation"
			: "kymo_poll(), or in Python its next region, step, torch module or "
			  "garbage collection");
}
