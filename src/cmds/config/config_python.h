/* kymo config python=…, torch=on, gc=on: whether a program can apply the change. */
#ifndef KYMO_CMDS_CONFIG_PYTHON_H
#define KYMO_CMDS_CONFIG_PYTHON_H

#include <stdbool.h>

#include "base/error.h"
#include "base/format.h"
#include "base/settings.h"

/* True if only an extension of kymo inside Python could apply this change of the key. */
bool config_python_is(const struct settings_key *key, const struct settings_value *value);
/* Can the program apply the change, or is it as wanted already? */
bool config_python_can_apply(const struct settings_key *key, const struct settings_value *value,
			     const struct kymo_control *control);
/* Why the program cannot, and what to do: -ENOTSUP and *err. */
int config_python_refuse(const struct settings_key *key, const struct kymo_control *control,
			 struct kymo_error *err);

#endif
