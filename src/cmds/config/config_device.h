/* kymo config device=on: whether anything in the program records operations of devices. */
#ifndef KYMO_CMDS_CONFIG_DEVICE_H
#define KYMO_CMDS_CONFIG_DEVICE_H

#include <stdbool.h>

#include "base/error.h"
#include "base/format.h"
#include "base/settings.h"

bool config_device_is(const struct settings_key *key, const struct settings_value *value);
/* True if the program, or a library that it has loaded, calls <kymo/device.h>, as kymo's layer for
   OpenCL does; or if that cannot be found out. */
bool config_device_can_apply(const struct kymo_control *control);
/* -ENOTSUP and *err. */
int config_device_refuse(const struct kymo_control *control, struct kymo_error *err);

#endif
