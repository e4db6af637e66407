/* kymo._memory: the data of libkymo_memory, for MemoryTracker and for the start of a program under
   `kymo run`. */
#include "frames.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>

#include <kymo/kymo.h>

#include "base/format.h"

#define WATCHES 16
#define STACK_MOST 128

static struct kymo_memory_watch watches[WATCHES];
static unsigned char taken[WATCHES];

/* ---- watching -------------------------------------------------------------------------------- */

static PyObject *memory_start(PyObject *module, PyObject *exact)
{
	uint64_t events, ticks = kymo_ticks();
	struct kymo_memory_event none;
	int at = 0, rc, is_exact = PyObject_IsTrue(exact);

	(void)module;
	if (is_exact < 0)
		return NULL;
	while (at < WATCHES && taken[at])
		at++;
	if (at == WATCHES)
		return PyErr_Format(PyExc_RuntimeError,
				    "%d memory trackers are active, the maximum; stop one first",
				    at);
	kymo_enable(NULL);
	kymo_memory_events(UINT64_MAX, &none, 0, &events);
	rc = kymo_memory_start(&watches[at], is_exact ? KYMO_MEMORY_EXACT : KYMO_MEMORY_SAMPLED);
	if (rc)
		return PyErr_Format(PyExc_OSError, "cannot track allocations: %s", strerror(-rc));
	taken[at] = 1;
	return Py_BuildValue("(iKK)", at, (unsigned long long)ticks, (unsigned long long)events);
}

static int watch_of(PyObject *number)
{
	long at = PyLong_AsLong(number);

	if (at == -1 && PyErr_Occurred())
		return -1;
	if (at < 0 || at >= WATCHES || !taken[at]) {
		PyErr_SetString(PyExc_ValueError, "no such tracker");
		return -1;
	}
	return (int)at;
}

static PyObject *memory_stop(PyObject *module, PyObject *number)
{
	int at = watch_of(number);

	(void)module;
	if (at < 0)
		return NULL;
	kymo_memory_stop(&watches[at]);
	taken[at] = 0;
	Py_RETURN_NONE;
}

static PyObject *stats(PyObject *module, PyObject *number)
{
	struct kymo_memory_stats now;
	int at = watch_of(number);

	(void)module;
	if (at < 0)
		return NULL;
	kymo_memory_read(&watches[at], &now);
	return Py_BuildValue(
		"{sLsLsLsLsLsdsdsKsKsKsssO}", "live", (long long)now.live_bytes, "peak",
		(long long)now.peak_bytes, "total", (long long)now.total_bytes, "allocs",
		(long long)now.allocs, "frees", (long long)now.frees, "variance", now.variance,
		"peak_variance", now.peak_variance, "lost", (unsigned long long)now.lost, "foreign",
		(unsigned long long)now.foreign, "peak_ticks", (unsigned long long)now.peak_ticks,
		"mode", now.mode == KYMO_MEMORY_EXACT ? "exact" : "sampled", "preloaded",
		now.preloaded ? Py_True : Py_False);
}

/* ---- sites and events ------------------------------------------------------------------------ */

/* C++ names demangled, if the program has loaded a C++ runtime. The caller frees it; NULL: not
   demangled. */
static char *demangled(const char *name)
{
	static char *(*demangle)(const char *, char *, size_t *, int *);
	void *library;
	int status;

	if (name[0] != '_' || name[1] != 'Z')
		return NULL;
	library = demangle ? NULL : dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
	if (library)
		*(void **)&demangle = dlsym(library, "__cxa_demangle");
	return demangle ? demangle(name, NULL, NULL, &status) : NULL;
}

static PyObject *frame_text(uint32_t *node)
{
	char name[KYMO_NAME_BYTES_MAX + 1], file[1024], *plain;
	const char *slash;
	PyObject *text;
	uint32_t line;

	*node = kymo_memory_frame(*node, name, sizeof(name), file, sizeof(file), &line);
	slash = strrchr(file, '/');
	if (line)
		return PyUnicode_FromFormat("%s (%s:%u)", name, file, line);
	plain = demangled(name);
	text = file[0] ? PyUnicode_FromFormat("%s (%s)", plain ? plain : name,
					      slash ? slash + 1 : file)
		       : PyUnicode_FromString(plain ? plain : name);
	free(plain);
	return text;
}

static PyObject *stack_of(uint32_t node)
{
	PyObject *list = PyList_New(0);

	for (int i = 0; list && node > 1 && i < STACK_MOST; i++) {
		PyObject *frame = frame_text(&node);

		if (!frame || PyList_Append(list, frame))
			Py_CLEAR(list);
		Py_XDECREF(frame);
	}
	return list;
}

static PyObject *stack(PyObject *module, PyObject *number)
{
	unsigned long node = PyLong_AsUnsignedLong(number);

	(void)module;
	return PyErr_Occurred() ? NULL : stack_of((uint32_t)node);
}

static PyObject *sites(PyObject *module, PyObject *number)
{
	struct kymo_memory_site found[64];
	Py_ssize_t most = PyLong_AsSsize_t(number);
	size_t count;
	PyObject *list;

	(void)module;
	if (most < 0 || most > 64)
		return PyErr_Occurred() ? NULL
					: PyErr_Format(PyExc_ValueError, "sites: expected 0 to 64");
	count = kymo_memory_sites(found, (size_t)most);
	if (count > (size_t)most)
		count = (size_t)most;
	list = PyList_New(0);
	for (size_t i = 0; list && i < count; i++) {
		PyObject *row = Py_BuildValue(
			"(ILLLL)", found[i].node, (long long)found[i].peak_bytes,
			(long long)found[i].live_bytes, (long long)found[i].total_bytes,
			(long long)found[i].allocs);

		if (!row || PyList_Append(list, row))
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
	return list;
}

/* Raw bytes; memory_decode() makes objects of them on demand. */
static PyObject *events(PyObject *module, PyObject *number)
{
	unsigned long long from = PyLong_AsUnsignedLongLong(number), end;
	struct kymo_memory_event *all;
	PyObject *bytes, *answer = NULL;
	uint64_t last;
	size_t count;

	(void)module;
	if (PyErr_Occurred())
		return NULL;
	bytes = PyBytes_FromStringAndSize(NULL, KYMO_MEMORY_EVENTS * sizeof(*all));
	if (!bytes)
		return NULL;
	all = (void *)PyBytes_AS_STRING(bytes);
	count = kymo_memory_events(from, all, KYMO_MEMORY_EVENTS, &last);
	end = last;
	if (!_PyBytes_Resize(&bytes, (Py_ssize_t)(count * sizeof(*all))))
		answer = Py_BuildValue("(NK)", bytes, end);
	return answer;
}

static PyObject *event_dict(const struct kymo_memory_event *event, uint64_t began, long long base)
{
	uint64_t after = event->ticks > began ? kymo_ticks_ns(event->ticks - began) : 0;

	return Py_BuildValue("{sKsssKsKsLsssN}", "ts_ns", (unsigned long long)after, "kind",
			     event->kind ? "free" : "alloc", "ptr", (unsigned long long)event->ptr,
			     "size", (unsigned long long)event->size, "allocated",
			     (long long)event->live_bytes - base, "device", "cpu", "stack",
			     stack_of(event->node));
}

static PyObject *memory_decode(PyObject *module, PyObject *arguments)
{
	const struct kymo_memory_event *all;
	unsigned long long began;
	long long base;
	const char *bytes;
	Py_ssize_t size;
	PyObject *list;

	(void)module;
	if (!PyArg_ParseTuple(arguments, "y#KL", &bytes, &size, &began, &base))
		return NULL;
	all = (const void *)bytes;
	list = PyList_New(0);
	for (size_t i = 0; list && i < (size_t)size / sizeof(*all); i++) {
		PyObject *one = event_dict(&all[i], began, base);

		if (!one || PyList_Append(list, one))
			Py_CLEAR(list);
		Py_XDECREF(one);
	}
	return list;
}

static PyObject *nanoseconds(PyObject *module, PyObject *number)
{
	unsigned long long ticks = PyLong_AsUnsignedLongLong(number);

	(void)module;
	return PyErr_Occurred() ? NULL : PyLong_FromUnsignedLongLong(kymo_ticks_ns(ticks));
}

/* ---- the module ------------------------------------------------------------------------------ */

static struct kymo_memory_python how = { sizeof(how), frames_walk, frames_name, 0, 0 };

/* The function that evaluates Python frames: native callers end there. */
static void find_evaluation(void)
{
	const ElfW(Sym) *symbol = NULL;
	void *address = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
	Dl_info info;

	if (!address || !dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol ||
	    !symbol->st_size)
		return;
	how.eval_start = (uintptr_t)address;
	how.eval_end = (uintptr_t)address + symbol->st_size;
}

static void memory_forget(void)
{
	kymo_memory_python(NULL);
}

static PyMethodDef methods[] = {
	{ "start", memory_start, METH_O,
	  "start($module, exact, /)\n--\n\nStarts a tracker: (number, ticks, events so far)." },
	{ "stop", memory_stop, METH_O, "stop($module, number, /)\n--\n\n" },
	{ "stats", stats, METH_O,
	  "stats($module, number, /)\n--\n\nTotals since the tracker started." },
	{ "sites", sites, METH_O,
	  "sites($module, most, /)\n--\n\n(node, at the peak, live, total, allocations), largest "
	  "first." },
	{ "stack", stack, METH_O, "stack($module, node, /)\n--\n\nFrames, the innermost first." },
	{ "events", events, METH_O,
	  "events($module, first, /)\n--\n\n(bytes, number of the next)." },
	{ "decode", memory_decode, METH_VARARGS,
	  "decode($module, events, ticks, live, /)\n--\n\n" },
	{ "nanoseconds", nanoseconds, METH_O, "nanoseconds($module, ticks, /)\n--\n\n" },
	{ NULL },
};

PyMODINIT_FUNC PyInit__memory(void)
{
	static struct PyModuleDef def = {
		PyModuleDef_HEAD_INIT,
		.m_name = "kymo._memory",
		.m_doc = "Allocation tracking; use kymo.profiler.MemoryTracker instead.",
		.m_size = -1,
		.m_methods = methods,
	};

	find_evaluation();
	kymo_memory_python(&how);
	Py_AtExit(memory_forget);
	kymo_poll(); /* KYMO_MEMORY=on takes effect here */
	return PyModule_Create(&def);
}
