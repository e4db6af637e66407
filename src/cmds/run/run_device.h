/* kymo run --device: what the program's OpenCL is told. */
#ifndef KYMO_CMDS_RUN_RUN_DEVICE_H
#define KYMO_CMDS_RUN_RUN_DEVICE_H

#include <stdbool.h>

#include "cmds/run/run_python.h"

/* Into variables of the program; where the layer for OpenCL is not there, it says so and goes on:
   other devices may be. */
void run_device_prepare(bool on, struct run_environment *environment);

#endif
