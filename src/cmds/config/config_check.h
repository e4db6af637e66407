/* The words of a kymo config, and whether the program can obey them: asked before any change. */
#ifndef KYMO_CMDS_CONFIG_CHECK_H
#define KYMO_CMDS_CONFIG_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/settings.h"
#include "store/live_processes.h"

#define CONFIG_KEYS_MOST 32

/* One KEY or KEY=VALUE of the command line. */
struct config_change {
	const struct settings_key *key;
	bool sets_value; /* false: print the value */
	struct settings_value value, old;
	bool changed;
	size_t reached; /* control pages that have the value now */
};

struct config {
	const char *target;
	int32_t pid; /* if TARGET is a pid; else 0 */
	struct live_processes live;
	struct config_change changes[CONFIG_KEYS_MOST];
	size_t count;
	bool json;
};

/* The collector applies the keys of the collector, the program applies the others. */
bool config_is_concerned(const struct config *config, const struct live_process *process,
			 const struct settings_key *key);
/* Fails if a change cannot take effect in any process: -ENOTSUP and a sentence. */
int config_check(const struct config *config, struct kymo_error *err);
bool config_changes_memory(const struct config *config);
/* A process that can apply a change of memory and has not yet; NULL: all have. */
const struct live_process *config_find_pending(const struct config *config);

#endif
