/* Makes a Python without kymo load it, through a folder on PYTHONPATH. */
#ifndef KYMO_COLLECT_RUN_INJECT_H
#define KYMO_COLLECT_RUN_INJECT_H

#include "base/buf.h"
#include "base/error.h"

/* "PYTHONPATH=FOLDER", followed by the current PYTHONPATH. FOLDER contains a `sitecustomize` that
   starts what KYMO_PYTHON and KYMO_TORCH request and leaves sys.path unchanged. -ENOENT and *err:
   the folder is not installed with this program. */
int inject_python(struct buf *out, struct kymo_error *err);
/* The first option of a python command that disables PYTHONPATH or sitecustomize ("-I"), or
   NULL. */
const char *inject_blocking_option(char *const *argv);

#endif
