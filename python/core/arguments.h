/* Part of _kymo.c: the arguments of functions. */
#ifndef KYMO_PYTHON_ARGUMENTS_H
#define KYMO_PYTHON_ARGUMENTS_H

#include <stdbool.h>
#include <string.h>

#include "text.h"

/* The longest prefix of at most `room` bytes that does not split a character. */
static size_t arguments_text_fit(const struct text *text, size_t room)
{
	size_t size = (size_t)text->size;

	if (size <= room)
		return size;
	for (size = room; size && ((unsigned char)text->bytes[size] & 0xc0) == 0x80; size--)
		;
	return size;
}

/* ---- arguments --------------------------------------------------------------------------- */

#define WORDS_MAX 2

struct signature {
	const char *function;
	const char *words[WORDS_MAX];
	int count;
	int required;
};

static int find_word(const struct signature *sig, PyObject *word)
{
	for (int i = 0; i < sig->count; i++)
		if (PyUnicode_CompareWithASCIIString(word, sig->words[i]) == 0)
			return i;
	PyErr_Format(PyExc_TypeError, "kymo.%s takes no argument called %R", sig->function, word);
	return -1;
}

/* Fills out[]; NULL for arguments not given. 0, or -1 and TypeError. */
static int take_arguments(const struct signature *sig, PyObject *const *args, Py_ssize_t positional,
			  PyObject *keywords, PyObject **out)
{
	Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;

	memset(out, 0, WORDS_MAX * sizeof(*out));
	if (positional > sig->count) {
		PyErr_Format(PyExc_TypeError, "kymo.%s takes at most %d arguments, got %zd",
			     sig->function, sig->count, positional);
		return -1;
	}
	for (Py_ssize_t i = 0; i < positional; i++)
		out[i] = args[i];
	for (Py_ssize_t i = 0; i < named; i++) {
		int at = find_word(sig, PyTuple_GET_ITEM(keywords, i));

		if (at < 0)
			return -1;
		if (out[at]) {
			PyErr_Format(PyExc_TypeError, "kymo.%s got %s twice", sig->function,
				     sig->words[at]);
			return -1;
		}
		out[at] = args[positional + i];
	}
	for (int i = 0; i < sig->required; i++) {
		if (!out[i]) {
			PyErr_Format(PyExc_TypeError, "kymo.%s needs %s", sig->function,
				     sig->words[i]);
			return -1;
		}
	}
	return 0;
}

/* None counts as not given if the argument is optional. */
static int check_text(const struct signature *sig, int at, PyObject **argument)
{
	if (at >= sig->required && *argument == Py_None)
		*argument = NULL;
	if (!*argument || PyUnicode_Check(*argument))
		return 0;
	PyErr_Format(PyExc_TypeError, "kymo.%s: %s takes a str, not %.100s", sig->function,
		     sig->words[at], Py_TYPE(*argument)->tp_name);
	return -1;
}

#endif
