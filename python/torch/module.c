/* The Python module. It only calls the other files; _torch_auto.py decides when. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops.h"

static int turn_on_recording(void)
{
	struct kymo_error err = { 0 };
	int rc = kymo_enable(&err);

	if (!rc)
		rc = kymo__configure("torch", "on", "kymo.torch", &err);
	if (rc)
		PyErr_SetString(PyExc_RuntimeError, err.text);
	return rc;
}

PyDoc_STRVAR(hook_doc, "hook($module, call, run_backward, /)\n--\n\n"
		       "Starts recording by nn.Module.__call__ and the engine's method. Returns "
		       "sentences about what is missing.");

static PyObject *module_hook(PyObject *module, PyObject *args)
{
	PyObject *call, *method, *lacking = PyList_New(0), *text = NULL;
	const char *missing;

	(void)module;
	if (!lacking || !PyArg_ParseTuple(args, "OO:hook", &call, &method) || turn_on_recording()) {
		Py_XDECREF(lacking);
		return NULL;
	}
	missing = symbols_find();
	if (missing) {
		text = PyUnicode_FromFormat("backward of modules is not recorded: %s", missing);
		PyList_Append(lacking, text ? text : Py_None);
		Py_XDECREF(text);
	}
	if (forward_hook(call)) {
		text = PyUnicode_FromString(
			"forward of modules is not recorded: nn.Module.__call__ is not a function");
		PyList_Append(lacking, text ? text : Py_None);
		Py_XDECREF(text);
	}
	if (backward_hook(method)) {
		text = PyUnicode_FromString(
			"calls of backward are not recorded: unsupported method of the engine");
		PyList_Append(lacking, text ? text : Py_None);
		Py_XDECREF(text);
	}
	state.hooked = true;
	state.settings.seen = false;
	return lacking;
}

PyDoc_STRVAR(hook_scopes_doc,
	     "hook_scopes($module, enter, leave, /)\n--\n\n"
	     "Records optimizer steps and waits for data, by the operators that\n"
	     "torch.profiler.record_function calls. False: unsupported operators.");

static PyObject *hook_scopes(PyObject *module, PyObject *args)
{
	PyObject *enter, *leave;

	(void)module;
	if (!PyArg_ParseTuple(args, "OO:hook_scopes", &enter, &leave))
		return NULL;
	return PyBool_FromLong(!scopes_hook(enter, leave));
}

PyDoc_STRVAR(hook_collectives_doc,
	     "hook_collectives($module, /)\n--\n\n"
	     "Records collectives of torch.distributed. False: an unsupported "
	     "build.");

static PyObject *hook_collectives(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	return PyBool_FromLong(collectives_hook());
}

PyDoc_STRVAR(unhook_doc, "unhook($module, /)\n--\n\n"
			 "Removes all hooks.");

static PyObject *unhook(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	forward_unhook();
	backward_unhook();
	scopes_unhook();
	collectives_unhook();
	backward_callback(false);
	ops_close();
	if (kymo__control())
		kymo__configure("torch", "off", "kymo.torch", NULL);
	Py_CLEAR(state.memory);
	accelerator_unset();
	state.hooked = false;
	Py_RETURN_NONE;
}

PyDoc_STRVAR(build_doc, "build($module, /)\n--\n\n"
			"(build id of libtorch_cpu, whether it is known), or None if its "
			"functions are missing.");

static PyObject *module_build(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	if (symbols_find())
		Py_RETURN_NONE;
	return Py_BuildValue("(sO)", symbols.build, symbols_known_build() ? Py_True : Py_False);
}

PyDoc_STRVAR(callbacks_doc,
	     "callbacks($module, sequence_offset, thread_offset, /)\n--\n\n"
	     "Adds the callback of at::RecordFunction, for a build on which it is safe.");

static PyObject *module_callbacks(PyObject *module, PyObject *args)
{
	unsigned int sequence, thread;

	(void)module;
	if (!PyArg_ParseTuple(args, "II:callbacks", &sequence, &thread))
		return NULL;
	if (sequence % 8 || thread % 8 || sequence > 504 || thread > 504) {
		PyErr_SetString(PyExc_ValueError, "offset out of range of at::RecordFunction");
		return NULL;
	}
	symbols.sequence_offset = sequence;
	symbols.forward_thread_offset = thread;
	backward_callback(true);
	Py_RETURN_NONE;
}

PyDoc_STRVAR(known_doc, "known_callbacks($module, /)\n--\n\n"
			"Like callbacks(), for a tested build; False: it is not one.");

static PyObject *known_callbacks(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	if (symbols_find() || !symbols_known_build())
		Py_RETURN_FALSE;
	backward_callback(true);
	Py_RETURN_TRUE;
}

/* ---- operators ---- */

PyDoc_STRVAR(operators_doc,
	     "operators($module, act, many, count, search, /)\n--\n\n"
	     "Finds where the inputs of operators are, by calling act(), which runs known ones.\n"
	     "search: also where they are unknown, only in a process that may crash. Then\n"
	     "measures what an operator costs: many() runs `count` of them. Returns None, or what\n"
	     "does not fit.");

static PyObject *module_operators(PyObject *module, PyObject *args)
{
	PyObject *act, *many, *result;
	const char *problem;
	int count, search;

	(void)module;
	if (!PyArg_ParseTuple(args, "OOip:operators", &act, &many, &count, &search))
		return NULL;
	problem = symbols_find();
	if (!problem && !symbols.name)
		problem = "libtorch_cpu.so does not export RecordFunction::name";
	if (problem)
		return PyUnicode_FromString(problem);
	op_inputs_begin(search);
	ops_add();
	ops_look_for_layout(true);
	result = PyObject_CallNoArgs(act);
	ops_look_for_layout(false);
	if (!result)
		return NULL;
	Py_DECREF(result);
	problem = op_inputs_end();
	if (problem)
		return PyUnicode_FromString(problem);
	ops_cost(many, (uint32_t)count);
	Py_RETURN_NONE;
}

PyDoc_STRVAR(layout_doc,
	     "layout($module, numbers=None, /)\n--\n\n"
	     "The layout that operators() found; or sets it, as another process found it.");

static PyObject *module_layout(PyObject *module, PyObject *args)
{
	struct op_layout *of = &op_layout, set;

	(void)module;
	if (!PyTuple_GET_SIZE(args))
		return Py_BuildValue("(IIIIIII)", of->inputs, of->dims, of->dtype, of->list,
				     of->list_tag, of->int_tag, of->bool_tag);
	if (!PyArg_ParseTuple(args, "(IIIIIII):layout", &set.inputs, &set.dims, &set.dtype,
			      &set.list, &set.list_tag, &set.int_tag, &set.bool_tag))
		return NULL;
	if (set.inputs % 8 || set.inputs > 504 || set.dims % 8 || set.dims > 504 || set.dtype % 2 ||
	    set.dtype > 1024 || set.list % 8 || set.list > 64) {
		PyErr_SetString(PyExc_ValueError, "offset out of range");
		return NULL;
	}
	if (symbols_find() || !symbols.name)
		Py_RETURN_NONE;
	op_layout = set;
	op_layout_known = true;
	ops_add();
	Py_RETURN_NONE;
}

PyDoc_STRVAR(peak_doc, "peak($module, device, dtype, flops, origin, /)\n--\n\n"
		       "A row of torch.peaks.");

static PyObject *module_peak(PyObject *module, PyObject *args)
{
	struct schema_torch_peak_row row = { .ts_ticks = kymo__ticks() };
	const char *device, *dtype, *origin;

	(void)module;
	if (!PyArg_ParseTuple(args, "ssds:peak", &device, &dtype, &row.flops, &origin))
		return NULL;
	row.device = kymo_name(device);
	row.dtype = *dtype ? kymo_name(dtype) : 0;
	row.origin = kymo_name(origin);
	kymo__append(SCHEMA_TORCH_PEAKS, &row);
	Py_RETURN_NONE;
}

/* ---- the child process that tries an unknown build ---- */

PyDoc_STRVAR(calibrate_begin_doc, "calibrate_begin($module, /)\n--\n\n"
				  "Starts the search for the offsets in at::RecordFunction; only "
				  "in a process that may crash.");

static PyObject *calibrate_begin(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	if (!symbols_find()) {
		backward_calibrate_begin();
		backward_callback(true);
	}
	Py_RETURN_NONE;
}

PyDoc_STRVAR(calibrate_doc,
	     "calibrate($module, forward, /)\n--\n\n"
	     "Calls forward(), which makes a graph, notes its numbers and thread, and "
	     "returns its result.\n"
	     "The next backward, which must run in another thread, is examined.");

static PyObject *calibrate(PyObject *module, PyObject *forward)
{
	uint64_t before = symbols.complete ? symbols.peek() : 0;
	PyObject *graph = PyObject_CallNoArgs(forward);

	(void)module;
	if (symbols.complete)
		backward_calibrate_expect(before, symbols.peek(), symbols.thread_id());
	return graph;
}

PyDoc_STRVAR(calibrate_end_doc, "calibrate_end($module, /)\n--\n\n"
				"(sequence_offset, thread_offset), or None.");

static PyObject *calibrate_end(PyObject *module, PyObject *unused)
{
	uint32_t sequence = 0, thread = 0;

	(void)module, (void)unused;
	if (backward_calibrate_end(&sequence, &thread))
		Py_RETURN_NONE;
	return Py_BuildValue("(II)", sequence, thread);
}

/* Strings of a list, and NULL. Valid as long as the list. */
static char **module_words_of(PyObject *list)
{
	Py_ssize_t count = PyList_Check(list) ? PyList_GET_SIZE(list) : 0;
	char **words = calloc((size_t)count + 1, sizeof(*words));

	for (Py_ssize_t i = 0; words && i < count; i++) {
		words[i] = (char *)(uintptr_t)PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));
		if (!words[i]) {
			PyErr_Clear();
			words[i] = "";
		}
	}
	return words;
}

static void become(char **argv, char **environment)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(argv[0], argv, environment);
	_exit(127);
}

/*
 * A child that the program does not see: it sends no SIGCHLD, and wait() does not return it.
 * execve() undoes this, so the child stays a copy of this process, waits for a child of its own,
 * and exits with its status.
 */
static pid_t start_unseen(char **argv, char **environment)
{
	pid_t pid = (pid_t)syscall(SYS_clone, 0ul, NULL, NULL, NULL, 0ul), own;
	int null, status = 0;

	if (pid)
		return pid;
	prctl(PR_SET_NAME, KYMO_TRIAL_NAME);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	syscall(SYS_close_range, 3u, ~0u, 0u); /* inherited pipes must not stay open */
	own = (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, NULL, NULL, NULL, 0ul);
	if (!own)
		become(argv, environment);
	while (own > 0 && waitpid(own, &status, 0) != own && errno == EINTR)
		;
	_exit(own < 0 ? 127 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static pid_t trial_pid;
static PyObject *trial_ended; /* called with its exit status */

PyDoc_STRVAR(trial_doc, "trial($module, argv, environment, ended, /)\n--\n\n"
			"Starts a process; ended(status) is called after a later forward.");

static PyObject *trial(PyObject *module, PyObject *args)
{
	PyObject *argv, *environment, *ended;
	char **words, **variables;

	(void)module;
	if (!PyArg_ParseTuple(args, "OOO:trial", &argv, &environment, &ended) || trial_pid > 0)
		return NULL;
	words = module_words_of(argv);
	variables = module_words_of(environment);
	trial_pid = words && variables && words[0] ? start_unseen(words, variables) : -1;
	free(words);
	free(variables);
	if (trial_pid > 0) {
		Py_INCREF(ended);
		Py_XSETREF(trial_ended, ended);
	}
	Py_RETURN_NONE;
}

/* Between two forwards: a system call only while a trial runs. */
void trial_look(void)
{
	PyObject *kind, *value, *trace, *done, *ended = trial_ended;
	int status = 0;

	if (trial_pid <= 0 || waitpid(trial_pid, &status, __WCLONE | WNOHANG) != trial_pid)
		return;
	trial_pid = 0;
	trial_ended = NULL;
	PyErr_Fetch(&kind, &value, &trace);
	done = PyObject_CallFunction(ended, "i", WIFEXITED(status) ? WEXITSTATUS(status) : 255);
	PyErr_Clear();
	Py_XDECREF(done);
	Py_XDECREF(ended);
	PyErr_Restore(kind, value, trace);
}

/* ---- memory, state ---- */

PyDoc_STRVAR(
	memory_doc,
	"memory($module, function, /)\n--\n\n"
	"Sets the function called for each row: (device, allocated, peak, reserved); None: none.");

static PyObject *memory(PyObject *module, PyObject *function)
{
	PyObject *old = state.memory;

	(void)module;
	state.memory = function == Py_None ? NULL : function;
	Py_XINCREF(state.memory);
	Py_XDECREF(old);
	Py_RETURN_NONE;
}

PyDoc_STRVAR(accelerator_doc,
	     "accelerator($module, type, initialized, stream, event, capturing, /)\n--\n\n"
	     "Sets functions for: whether the program uses it, the current stream, a new timing "
	     "event, and\n"
	     "(or None) whether a graph is being captured. type None: stops; pending spans are "
	     "dropped.");

static PyObject *accelerator(PyObject *module, PyObject *args)
{
	PyObject *initialized = NULL, *stream = NULL, *make = NULL, *capturing = NULL;
	const char *type;

	(void)module;
	if (!PyArg_ParseTuple(args, "z|OOOO:accelerator", &type, &initialized, &stream, &make,
			      &capturing))
		return NULL;
	if (type && capturing)
		accelerator_set(type, initialized, stream, make, capturing);
	else
		accelerator_unset();
	Py_RETURN_NONE;
}

PyDoc_STRVAR(mark_doc, "mark($module, text, /)\n--\n\n"
		       "A row of trace.marks with the name kymo.torch.");

static PyObject *mark(PyObject *module, PyObject *text)
{
	const char *utf8 = PyUnicode_AsUTF8(text);

	(void)module;
	if (!utf8)
		return NULL;
	kymo_mark("kymo.torch", utf8);
	Py_RETURN_NONE;
}

PyDoc_STRVAR(look_doc, "look($module, /)\n--\n\n"
		       "The current state as a dict, for tests.");

static PyObject *module_look(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	return Py_BuildValue("{s:O,s:O,s:O,s:O,s:O,s:O,s:K,s:n,s:I,s:(III)}", "forward",
			     forward_is_hooked() ? Py_True : Py_False, "run_backward",
			     backward_is_hooked() ? Py_True : Py_False, "scopes",
			     scopes_are_hooked() ? Py_True : Py_False, "callbacks",
			     state.callback_on ? Py_True : Py_False, "backward_nodes",
			     symbols.sequence_offset ? Py_True : Py_False, "operators_on",
			     ops_are_on() ? Py_True : Py_False, "operators",
			     (unsigned long long)ops_rows(), "modules", (Py_ssize_t)names_count(),
			     "step", (unsigned int)steps_now(), "rows", state.rows[STAGE_FORWARD],
			     state.rows[STAGE_BACKWARD], state.rows[STAGE_STEP]);
}

static PyMethodDef methods[] = {
	{ "hook", module_hook, METH_VARARGS, hook_doc },
	{ "hook_scopes", hook_scopes, METH_VARARGS, hook_scopes_doc },
	{ "hook_collectives", hook_collectives, METH_NOARGS, hook_collectives_doc },
	{ "unhook", unhook, METH_NOARGS, unhook_doc },
	{ "build", module_build, METH_NOARGS, build_doc },
	{ "callbacks", module_callbacks, METH_VARARGS, callbacks_doc },
	{ "known_callbacks", known_callbacks, METH_NOARGS, known_doc },
	{ "calibrate_begin", calibrate_begin, METH_NOARGS, calibrate_begin_doc },
	{ "calibrate", calibrate, METH_O, calibrate_doc },
	{ "calibrate_end", calibrate_end, METH_NOARGS, calibrate_end_doc },
	{ "operators", module_operators, METH_VARARGS, operators_doc },
	{ "layout", module_layout, METH_VARARGS, layout_doc },
	{ "peak", module_peak, METH_VARARGS, peak_doc },
	{ "trial", trial, METH_VARARGS, trial_doc },
	{ "memory", memory, METH_O, memory_doc },
	{ "accelerator", accelerator, METH_VARARGS, accelerator_doc },
	{ "mark", mark, METH_O, mark_doc },
	{ "look", module_look, METH_NOARGS, look_doc },
	{ NULL },
};

/* One interpreter: the replaced entries of torch exist once per process. */
static PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "kymo._torch",
	.m_doc = "Records PyTorch modules; use kymo.enable_torch_profiling().",
	.m_size = -1,
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit__torch(void)
{
	return PyModule_Create(&definition);
}
