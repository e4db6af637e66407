/* The path of a module in another one: "layers.0". Only dictionaries are read. */
#include <string.h>

#include "torch.h"

static PyObject *children_of(PyObject *module)
{
	static PyObject *word;
	PyObject *dict = PyObject_GenericGetDict(module, NULL), *children = NULL;

	if (!word)
		word = PyUnicode_InternFromString("_modules");
	if (dict && word && PyDict_Check(dict))
		children = PyDict_GetItemWithError(dict, word);
	Py_XDECREF(dict); /* the module holds a reference */
	PyErr_Clear();
	return children && PyDict_Check(children) ? children : NULL;
}

bool paths_hold(PyObject *parent, PyObject *module, int depth, int *budget)
{
	PyObject *children = children_of(parent), *key, *value;
	Py_ssize_t at = 0;

	while (children && PyDict_Next(children, &at, &key, &value) && --*budget > 0)
		if (value == module ||
		    (depth > 0 && value != Py_None && paths_hold(value, module, depth - 1, budget)))
			return true;
	return false;
}

/* "layers.0" into path: direct children first, then deeper. */
static bool search(PyObject *parent, PyObject *module, int depth, int *budget, char *path,
		   size_t path_bytes)
{
	PyObject *children = children_of(parent), *key, *value;
	Py_ssize_t at = 0;

	while (children && depth == 0 && PyDict_Next(children, &at, &key, &value)) {
		const char *text = value == module ? PyUnicode_AsUTF8(key) : NULL;

		if (text)
			return (size_t)snprintf(path, path_bytes, "%s", text) < path_bytes;
		if (--*budget <= 0)
			break;
	}
	at = 0;
	while (children && depth > 0 && PyDict_Next(children, &at, &key, &value)) {
		const char *text = PyUnicode_AsUTF8(key);
		size_t used = text ? strlen(text) : path_bytes;

		if (--*budget <= 0 || value == Py_None || used + 2 > path_bytes)
			continue;
		if (search(value, module, depth - 1, budget, path + used + 1,
			   path_bytes - used - 1)) {
			memcpy(path, text, used);
			path[used] = '.';
			return true;
		}
	}
	PyErr_Clear();
	return false;
}

/* Attribute names that wrappers use for the wrapped module: not part of the name. */
static bool is_wrapping(const char *part, size_t bytes, PyObject *parent)
{
	static const char *const always[] = { "_orig_mod", "_fsdp_wrapped_module",
					      "_checkpoint_wrapped_module" };
	const char *class_name = Py_TYPE(parent)->tp_name;

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (strlen(always[i]) == bytes && !memcmp(always[i], part, bytes))
			return true;
	return bytes == 6 && !memcmp(part, "module", 6) && strstr(class_name, "DataParallel");
}

static void strip_wrappers(char *path, PyObject *parent)
{
	char *out = path, *part = path;

	while (*part) {
		size_t bytes = strcspn(part, ".");
		char *next = part + bytes + (part[bytes] == '.');

		if (!is_wrapping(part, bytes, parent)) {
			if (out > path)
				*out++ = '.';
			memmove(out, part, bytes);
			out += bytes;
		}
		part = next;
	}
	*out = '\0';
}

bool paths_find(PyObject *parent, PyObject *module, int *budget, char path[PATH_BYTES])
{
	bool found = false;

	for (int depth = 0; !found && depth<PATHS_DEPTH && * budget> 0; depth++) {
		int before = *budget;

		found = search(parent, module, depth, budget, path, PATH_BYTES);
		if (*budget == before)
			break; /* nothing is nested that deep */
	}
	if (found)
		strip_wrappers(path, parent);
	return found;
}
