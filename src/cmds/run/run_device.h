/* kymo run --device: loads recording libraries into the program's OpenCL and CUDA. */
#ifndef KYMO_CMDS_RUN_RUN_DEVICE_H
#define KYMO_CMDS_RUN_RUN_DEVICE_H

#include <stdbool.h>

#include "cmds/run/run_python.h"

/* Sets variables for the program: OPENCL_LAYERS, and CUDA_INJECTION64_PATH if the user has not set
   it. A missing library is reported and not an error, because other devices may be recorded. */
void run_device_prepare(bool on, struct run_environment *environment);

#endif
