/* kymo run --device: loads a recording layer into the program's OpenCL. */
#ifndef KYMO_CMDS_RUN_RUN_DEVICE_H
#define KYMO_CMDS_RUN_RUN_DEVICE_H

#include <stdbool.h>

#include "cmds/run/run_python.h"

/* Sets variables for the program. A missing OpenCL layer is reported and not an error, because
   other devices may be recorded. */
void run_device_prepare(bool on, struct run_environment *environment);

#endif
