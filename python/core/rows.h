/* Part of _kymo.c: marks, counters, steps and their phases. */
#ifndef KYMO_PYTHON_ROWS_H
#define KYMO_PYTHON_ROWS_H

#include "record/record.h"
#include "region.h"

static PyObject *mark_by(void (*write)(const char *name, const char *text),
			 const struct signature *sig, PyObject *const *args, Py_ssize_t count,
			 PyObject *keywords)
{
	struct text name = { 0 }, text = { 0 };
	PyObject *given[WORDS_MAX];
	int rc = -1;

	if (take_arguments(sig, args, count, keywords, given) || check_text(sig, 0, &given[0]) ||
	    check_text(sig, 1, &given[1]))
		return NULL;
	if (!kymo_enabled())
		Py_RETURN_NONE;
	if (text_take(given[0], &name) || (given[1] && text_take(given[1], &text)))
		goto out;
	region_ready_thread();
	write(name.bytes, text.bytes);
	rc = 0;
out:
	text_release(&name);
	text_release(&text);
	if (rc)
		return NULL;
	Py_RETURN_NONE;
}

static const struct signature mark_words = { "mark", { "name", "text" }, 2, 1 };
static const struct signature signpost_words = { "signpost", { "header", "message" }, 2, 1 };

PyDoc_STRVAR(mark_doc, "mark($module, /, name, text=None)\n--\n\n"
		       "Marks a moment, with a text of any length: a row of trace.marks.\n\n"
		       ">>> kymo.mark(\"epoch\", \"learning rate halved\")\n");

static PyObject *kymo_py_mark(PyObject *module, PyObject *const *args, Py_ssize_t count,
			      PyObject *keywords)
{
	(void)module;
	return mark_by(kymo_mark, &mark_words, args, count, keywords);
}

PyDoc_STRVAR(_mark_last_doc, "_mark_last($module, /, name, text=None)\n--\n\n"
			     "mark() of a program that ends: it may use up the budget.");

static PyObject *kymo_py__mark_last(PyObject *module, PyObject *const *args, Py_ssize_t count,
				    PyObject *keywords)
{
	(void)module;
	return mark_by(kymo__mark_last, &mark_words, args, count, keywords);
}

PyDoc_STRVAR(signpost_doc, "signpost($module, /, header, message=None)\n--\n\n"
			   "Alias of mark(), with Tracy's name.\n\n"
			   ">>> kymo.signpost(\"warm-up done\")\n");

static PyObject *kymo_py_signpost(PyObject *module, PyObject *const *args, Py_ssize_t count,
				  PyObject *keywords)
{
	(void)module;
	return mark_by(kymo_mark, &signpost_words, args, count, keywords);
}

/* A float of any number; one too large for a float is infinite, not an error. */
static int rows_take_double(PyObject *value, double *out)
{
	*out = PyFloat_AsDouble(value);
	if (*out != -1.0 || !PyErr_Occurred())
		return 0;
	if (!PyErr_ExceptionMatches(PyExc_OverflowError) || !PyLong_Check(value))
		return -1;
	PyErr_Clear();
	*out = PyObject_RichCompareBool(value, Py_False, Py_LT) == 1 ? -Py_HUGE_VAL : Py_HUGE_VAL;
	return 0;
}

static bool rows_is_number(PyObject *value)
{
	const PyNumberMethods *methods = Py_TYPE(value)->tp_as_number;

	return methods && (methods->nb_float || methods->nb_index);
}

static const struct signature record_words = { "record", { "name", "value" }, 2, 2 };

PyDoc_STRVAR(record_doc, "record($module, /, name, value)\n--\n\n"
			 "Records a value now: a row of trace.counters.\n\n"
			 ">>> kymo.record(\"loss\", 0.25)\n\n"
			 "Values are converted to float only while recording is on, so\n"
			 "kymo.record(\"loss\", loss) waits for no device in a program that "
			 "is not recorded.");

static PyObject *kymo_py_record(PyObject *module, PyObject *const *args, Py_ssize_t count,
				PyObject *keywords)
{
	PyObject *given[WORDS_MAX], *region;
	double value;

	if (take_arguments(&record_words, args, count, keywords, given) ||
	    check_text(&record_words, 0, &given[0]))
		return NULL;
	if (!rows_is_number(given[1]))
		return PyErr_Format(PyExc_TypeError,
				    "kymo.record: value takes a number, not %.100s",
				    Py_TYPE(given[1])->tp_name);
	poll_program();
	if (!kymo_enabled())
		Py_RETURN_NONE;
	if (rows_take_double(given[1], &value))
		return NULL;
	region = region_named(region_state_of(module), given[0]);
	if (!region)
		return NULL;
	region_ready_thread();
	kymo_counter_id(region_py_id((struct region *)region), value);
	Py_RETURN_NONE;
}

static PyObject *step_by(void (*step)(const char *), const struct signature *sig,
			 PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
	struct text name = { 0 };
	PyObject *given[WORDS_MAX];

	if (take_arguments(sig, args, count, keywords, given) || check_text(sig, 0, &given[0]))
		return NULL;
	poll_program();
	if (!kymo_enabled())
		Py_RETURN_NONE;
	if (given[0] && text_take(given[0], &name))
		return NULL;
	region_ready_thread();
	step(name.bytes);
	text_release(&name);
	Py_RETURN_NONE;
}

static const struct signature step_words = { "step", { "name" }, 1, 0 };
static const struct signature step_end_words = { "step_end", { "name" }, 1, 0 };

PyDoc_STRVAR(step_doc, "step($module, /, name=\"step\")\n--\n\n"
		       "Begins a step and ends the previous one: rows of trace.steps.\n\n"
		       ">>> for batch in range(3):\n"
		       "...     kymo.step()\n"
		       ">>> kymo.step_end()\n");

static PyObject *kymo_py_step(PyObject *module, PyObject *const *args, Py_ssize_t count,
			      PyObject *keywords)
{
	(void)module;
	return step_by(kymo_step, &step_words, args, count, keywords);
}

PyDoc_STRVAR(step_end_doc, "step_end($module, /, name=\"step\")\n--\n\n"
			   "Ends the step without beginning another.\n\n"
			   ">>> kymo.step_end()\n");

static PyObject *kymo_py_step_end(PyObject *module, PyObject *const *args, Py_ssize_t count,
				  PyObject *keywords)
{
	(void)module;
	return step_by(kymo_step_end, &step_end_words, args, count, keywords);
}

PyDoc_STRVAR(current_step_doc, "current_step($module, /)\n--\n\n"
			       "The number of the current step; 0 before the first one.\n");

static PyObject *kymo_py_current_step(PyObject *module, PyObject *unused)
{
	(void)module, (void)unused;
	return PyLong_FromUnsignedLong(kymo_current_step());
}

static int phase_find(PyObject *name)
{
	for (int i = 0; i < KYMO_PHASE_COUNT; i++)
		if (PyUnicode_CompareWithASCIIString(name, phase_words[i]) == 0)
			return i;
	return -1;
}

PyDoc_STRVAR(phase_doc, "phase($module, name, /)\n--\n\n"
			"A region that is also a phase of the current step: \"data\", \"forward\", "
			"\"backward\" or\n"
			"\"optimizer\" (columns data_ns … of trace.steps).\n\n"
			">>> with kymo.phase(\"forward\"):\n"
			"...     pass\n");

static PyObject *kymo_py_phase(PyObject *module, PyObject *name)
{
	int phase;

	if (!PyUnicode_Check(name))
		return PyErr_Format(PyExc_TypeError, "kymo.phase: name takes a str, not %.100s",
				    Py_TYPE(name)->tp_name);
	phase = phase_find(name);
	if (phase < 0)
		return PyErr_Format(PyExc_ValueError,
				    "kymo.phase(%R): a step has the phases data, forward, backward "
				    "and optimizer; "
				    "for anything else use kymo.region",
				    name);
	Py_INCREF(region_state_of(module)->phases[phase]);
	return region_state_of(module)->phases[phase];
}

static int make_phases(struct module_state *state)
{
	for (int i = 0; i < KYMO_PHASE_COUNT; i++) {
		state->phases[i] = PyObject_CallFunction(state->region_type, "sOii", phase_words[i],
							 Py_None, 0, i);
		if (!state->phases[i])
			return -1;
	}
	return 0;
}

#endif
