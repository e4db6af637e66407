/*
 * Names of code objects outside of co_extra, for programs in which another user of co_extra was
 * there first. CPython calls the free function of every index below the size of a co_extra, so our
 * index above that user's would make it free what it never set. Entries are found by
 * address; a weak reference removes the entry when its code object ends, before the address can
 * be used again. The GIL protects the table.
 */
#include "trace.h"

#include <stdlib.h>

#define BUCKETS_FIRST 1024u

static struct code_entry **buckets;
static size_t bucket_count, entry_count;

static size_t code_bucket(const void *code, size_t count)
{
	return (((uintptr_t)code >> 4) * 0x9E3779B97F4A7C15u >> 20) & (count - 1);
}

struct code_entry *codetable_find(const PyCodeObject *code)
{
	struct code_entry *entry = bucket_count ? buckets[code_bucket(code, bucket_count)] : NULL;

	while (entry && entry->code != code)
		entry = entry->next;
	return entry;
}

/* ---- removal ----------------------------------------------------------------------------- */

static void entry_free(struct code_entry *entry)
{
	Py_XDECREF(entry->reference);
	for (int item = 0; item < CODE_ITEMS; item++)
		codes_free_item((enum code_item)item, entry->items[item]);
	free(entry);
}

static PyObject *code_ended(PyObject *address, PyObject *reference)
{
	const void *code = PyLong_AsVoidPtr(address);
	struct code_entry **link = &buckets[code_bucket(code, bucket_count)], *entry;

	(void)reference;
	while (*link && (*link)->code != code)
		link = &(*link)->next;
	entry = *link;
	if (entry) {
		*link = entry->next;
		entry_count--;
		entry_free(entry);
	}
	Py_RETURN_NONE;
}

static PyMethodDef ended_method = { "code_ended", code_ended, METH_O, NULL };

static PyObject *reference_to(PyCodeObject *code)
{
	PyObject *address = PyLong_FromVoidPtr(code);
	PyObject *callback = address ? PyCFunction_New(&ended_method, address) : NULL;
	PyObject *reference = callback ? PyWeakref_NewRef((PyObject *)code, callback) : NULL;

	Py_XDECREF(callback);
	Py_XDECREF(address);
	return reference;
}

/* ---- insertion --------------------------------------------------------------------------- */

static int make_room(void)
{
	size_t count = bucket_count ? bucket_count * 2 : BUCKETS_FIRST;
	struct code_entry **wider;

	if (entry_count < bucket_count)
		return 0;
	wider = calloc(count, sizeof(struct code_entry *));
	if (!wider)
		return -1;
	for (size_t i = 0; i < bucket_count; i++)
		for (struct code_entry *entry = buckets[i], *next; entry; entry = next) {
			size_t at = code_bucket(entry->code, count);

			next = entry->next;
			entry->next = wider[at];
			wider[at] = entry;
		}
	free(buckets);
	buckets = wider;
	bucket_count = count;
	return 0;
}

struct code_entry *codetable_at(PyCodeObject *code)
{
	struct code_entry *entry = codetable_find(code);
	PyObject *reference;

	if (entry)
		return entry;
	/* May run a collection, which may remove entries: the table is touched after it. */
	reference = reference_to(code);
	entry = reference ? calloc(1, sizeof(*entry)) : NULL;
	if (!entry || make_room()) {
		Py_XDECREF(reference);
		free(entry);
		return NULL;
	}
	entry->code = code;
	entry->reference = reference;
	entry->next = buckets[code_bucket(code, bucket_count)];
	buckets[code_bucket(code, bucket_count)] = entry;
	entry_count++;
	return entry;
}
