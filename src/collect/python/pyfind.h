/* Finds CPython in another process: its version, its runtime state and the layout of its
   structs. */
#ifndef KYMO_COLLECT_PYTHON_PYFIND_H
#define KYMO_COLLECT_PYTHON_PYFIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "collect/python/pylayout.h"

struct pyfind {
	uint64_t runtime; /* address of _PyRuntime */
	uint32_t version; /* like Py_Version: 0x030b07f0 */
	struct pylayout layout;
};

/* 0; -ENOENT: no Python, or not initialised yet; -ENOTSUP: an unsupported Python; -EPERM, -ESRCH,
   …: see *err. */
int pyfind_process(pid_t pid, struct pyfind *out, struct kymo_error *err);

#endif
