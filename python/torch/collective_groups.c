/* Process groups of torch.distributed: names and members, by the address of the backend. */
#include "collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MOST 256
#define MEMBERS_BYTES 1024

static struct collective_group groups[GROUPS_MOST];
static uint32_t group_count;

/* The C++ object of one of pybind11's. */
static const void *object_of(PyObject *wrapped)
{
	return ((const void **)(void *)wrapped)[sizeof(PyObject) / sizeof(void *)];
}

static PyObject *call_with(PyObject *object, const char *method, PyObject *argument)
{
	PyObject *result = object ? PyObject_CallMethod(object, method, "O", argument) : NULL;

	PyErr_Clear();
	return result;
}

static bool is_backend_of(PyObject *group, const void *backend)
{
	static const char *const devices[] = { "cpu", "cuda", "xpu" };
	PyObject *torch = PyImport_ImportModule("torch");
	bool is = false;

	for (size_t i = 0; torch && !is && i < sizeof(devices) / sizeof(devices[0]); i++) {
		PyObject *device = PyObject_CallMethod(torch, "device", "s", devices[i]);
		PyObject *found = device ? call_with(group, "_get_backend", device) : NULL;

		is = found && object_of(found) == backend;
		Py_XDECREF(found);
		Py_XDECREF(device);
		PyErr_Clear();
	}
	Py_XDECREF(torch);
	PyErr_Clear();
	return is;
}

/* The ranks as "0,1,2"; also as numbers. */
static void take_members(struct collective_group *group, PyObject *c10d, PyObject *of)
{
	PyObject *ranks = call_with(c10d, "get_process_group_ranks", of);
	Py_ssize_t count = ranks && PyList_Check(ranks) ? PyList_GET_SIZE(ranks) : 0;
	char text[MEMBERS_BYTES] = "";
	size_t used = 0;

	group->ranks = count ? calloc((size_t)count, sizeof(*group->ranks)) : NULL;
	for (Py_ssize_t i = 0; group->ranks && i < count; i++) {
		group->ranks[i] = (int32_t)PyLong_AsLong(PyList_GET_ITEM(ranks, i));
		if (used < sizeof(text) - 16)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d",
						 i ? "," : "", (int)group->ranks[i]);
	}
	group->size = (uint32_t)count;
	/* A list that was cut short would name another group. */
	group->members = used && used < sizeof(text) - 16 ? kymo_name(text) : 0;
	Py_XDECREF(ranks);
	PyErr_Clear();
}

/* After a restart by torchrun the groups of a job have the same names and count from 1 again: the
   number of the restart makes them different. */
static uint32_t group_name(const char *text)
{
	const char *restarts = getenv("TORCHELASTIC_RESTART_COUNT");
	char name[256];

	if (!restarts || !*restarts || !strcmp(restarts, "0"))
		return kymo_name(text);
	snprintf(name, sizeof(name), "%.200s (restart %.16s)", text, restarts);
	return kymo_name(name);
}

/* False: it is another group. */
static bool collective_groups_take(struct collective_group *group, PyObject *c10d, PyObject *of,
				   PyObject *name, const void *backend)
{
	const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;

	if (!text || !is_backend_of(of, backend))
		return false;
	group->name = group_name(text);
	take_members(group, c10d, of);
	return true;
}

/* Fills the group with that backend, from torch.distributed's list of groups. GIL. */
static void describe_group(struct collective_group *group, const void *backend)
{
	PyObject *c10d = PyImport_ImportModule("torch.distributed.distributed_c10d");
	PyObject *world = c10d ? PyObject_GetAttrString(c10d, "_world") : NULL;
	PyObject *names = world ? PyObject_GetAttrString(world, "pg_names") : NULL;
	PyObject *key, *value;
	Py_ssize_t at = 0;

	while (names && PyDict_Check(names) && PyDict_Next(names, &at, &key, &value)) {
		/* Functions of torch release the GIL, and another thread may end the group. */
		PyObject *both = PyTuple_Pack(2, key, value);
		const bool found = both && collective_groups_take(group, c10d, key, value, backend);

		Py_XDECREF(both);
		if (found)
			break;
	}
	Py_XDECREF(names);
	Py_XDECREF(world);
	Py_XDECREF(c10d);
	PyErr_Clear();
}

static int32_t ask_number(PyObject *module, const char *function)
{
	PyObject *number = module ? PyObject_CallMethod(module, function, NULL) : NULL;
	long value = number && PyLong_Check(number) ? PyLong_AsLong(number) : -1;

	Py_XDECREF(number);
	PyErr_Clear();
	return value >= 0 && value <= INT32_MAX ? (int32_t)value : -1;
}

/* Of a process that was started without the variables of a launcher, as by torch.multiprocessing:
   the group knows it. GIL. */
static void learn_rank(void)
{
	struct kymo_control *control = kymo__control();
	PyObject *c10d;

	if (!control || control->rank >= 0)
		return;
	c10d = PyImport_ImportModule("torch.distributed.distributed_c10d");
	control->ranks = ask_number(c10d, "get_world_size");
	control->rank = ask_number(c10d, "get_rank");
	if (control->rank >= 0)
		control->rank_source = KYMO_RANK_TORCH;
	Py_XDECREF(c10d);
	PyErr_Clear();
}

static struct collective_group *find_by_backend(const void *backend)
{
	uint32_t count = kymo__load_acquire(&group_count);

	/* The newest first: an address may be used again. */
	for (uint32_t i = count; i-- > 0;)
		if (groups[i].backend == backend)
			return &groups[i];
	return NULL;
}

/* Once for each group, and for each process: ids of names differ. */
static struct collective_group *add_group(const void *backend)
{
	struct collective_group described = { .backend = backend }, *group;
	PyGILState_STATE gil;

	/* Where the table is full, no call waits for the GIL. */
	if (kymo__load_acquire(&group_count) >= GROUPS_MOST)
		return NULL;
	gil = PyGILState_Ensure();
	describe_group(&described, backend);
	learn_rank();
	/* Meanwhile another thread may have added this group, or another one. */
	group = find_by_backend(backend);
	if (!group && group_count < GROUPS_MOST) {
		group = &groups[group_count];
		*group = described;
		kymo__store_release(&group_count, group_count + 1);
	} else {
		free(described.ranks);
	}
	PyGILState_Release(gil);
	return group;
}

struct collective_group *collective_groups_get(const void *backend)
{
	struct collective_group *group = find_by_backend(backend);

	return group ? group : add_group(backend);
}

void collective_groups_forget(void)
{
	group_count = 0;
}
