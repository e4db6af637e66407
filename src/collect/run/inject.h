/* Bringing kymo into a Python that never heard of it: by a folder on PYTHONPATH. */
#ifndef KYMO_COLLECT_RUN_INJECT_H
#define KYMO_COLLECT_RUN_INJECT_H

#include "base/buf.h"
#include "base/error.h"

/* "PYTHONPATH=FOLDER", with what PYTHONPATH is now behind it. FOLDER holds a `sitecustomize` that
   starts what KYMO_PYTHON and KYMO_TORCH ask for, and leaves sys.path as it would be without it.
   -ENOENT and *err: there is no such folder beside this program. */
int inject_python(struct buf *out, struct kymo_error *err);
/* The first option with which this command keeps every such folder out ("-I"), or NULL. */
const char *inject_kept_out_by(char *const *argv);

#endif
