/* One value of an Arrow column as a Python object. */
#ifndef KYMO_PYTHON_ARROW_CONVERT_H
#define KYMO_PYTHON_ARROW_CONVERT_H

#include <Python.h>

#include <nanoarrow/nanoarrow.h>

struct convert {
	const struct ArrowSchema *schema; /* of the whole table */
	PyObject *special; /* special(kind, value, unit): values without an obvious Python type */
};

/* A new reference; NULL with an exception. Lists are lists, structs dicts, maps lists of dicts
   (key, value). */
PyObject *convert_value(const struct convert *convert, const struct ArrowSchema *schema,
			const struct ArrowArrayView *view, int64_t row);

#endif
