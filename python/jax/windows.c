/*
 * Windows of XLA's operations: a session of XLA's profiler during one step of many. Its answer, an
 * XSpace, is appended as it is to a file of kymo run, which decodes it after the program's end.
 * Guarded by the GIL. Only one session of a process can be open, and the program's own goes first.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/files/xla_window.h"
#include "base/format.h"
#include "jax.h"
#include "record/record.h"

static struct {
	PyObject *make; /* NULL: no windows */
	PyObject *init; /* of the class of sessions, as the program sees it */
	PyObject *session; /* NULL: none is open */
	const void *owner; /* the mark that the window ends with */
	struct xla_window head;
	uint32_t every, seen;
	pid_t pid; /* a forked child has no profiler */
	int file;
	bool making, has_steps;
} windows = { .file = -1 };

/* No more windows; the reason is a mark. */
static void windows_give_up(const char *why)
{
	kymo_mark("kymo.xla", why);
	Py_CLEAR(windows.make);
	if (windows.file >= 0)
		close(windows.file);
	windows.file = -1;
}

static void read_clocks(uint64_t *out_ticks, uint64_t *out_realtime_ns)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*out_ticks = kymo_ticks();
	*out_realtime_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One of so many; the first step compiles, so it is the second. */
static bool is_wanted(const struct annotation_mark *mark, bool is_outermost)
{
	if (mark->is_step && !windows.has_steps) {
		windows.has_steps = true;
		windows.seen = 0;
	}
	if (windows.has_steps ? !mark->is_step : !is_outermost)
		return false;
	return windows.seen++ % windows.every == (windows.every > 1);
}

void windows_begin(struct annotation_mark *mark, bool is_outermost)
{
	if (!windows.make || windows.session || !kymo_enabled() || !is_wanted(mark, is_outermost) ||
	    getpid() != windows.pid)
		return;
	read_clocks(&windows.head.begin_ticks, &windows.head.begin_realtime_ns);
	windows.making = true;
	windows.session = PyObject_CallNoArgs(windows.make);
	windows.making = false;
	windows.owner = mark;
	PyErr_Clear();
	if (!windows.session)
		windows_give_up("no windows of XLA: the profiler of this jaxlib cannot be started");
}

/* A new reference to bytes; NULL: nothing. */
static PyObject *stop_session(void)
{
	PyObject *session = windows.session, *space;

	windows.session = NULL; /* first: stop() may run other threads */
	windows.owner = NULL;
	space = PyObject_CallMethod(session, "stop", NULL);
	PyErr_Clear();
	Py_DECREF(session);
	if (space && !PyBytes_Check(space))
		Py_CLEAR(space);
	return space;
}

static void write_space(PyObject *space)
{
	const struct kymo_control *control = kymo__control();
	struct xla_window *head = &windows.head;
	static const char padding[8];
	struct iovec parts[3] = { { head, sizeof(*head) },
				  { PyBytes_AS_STRING(space), (size_t)PyBytes_GET_SIZE(space) },
				  { (void *)padding, 0 } };
	struct stat status;
	ssize_t all;

	if (!control || fstat(windows.file, &status))
		return;
	parts[2].iov_len = (size_t)xla_window_padded(parts[1].iov_len) - parts[1].iov_len;
	all = (ssize_t)(sizeof(*head) + parts[1].iov_len + parts[2].iov_len);
	memcpy(head->magic, XLA_WINDOW_MAGIC, sizeof(head->magic));
	head->bytes = parts[1].iov_len;
	head->pid = control->pid;
	head->starttime = control->starttime;
	head->step = kymo_current_step();
	if ((uint64_t)status.st_size + (uint64_t)all > XLA_WINDOWS_BYTES_MAX)
		windows_give_up("no more windows of XLA: those of this run have reached 256 MiB");
	else if (writev(windows.file, parts, 3) != all)
		windows_give_up("no more windows of XLA: the disk is full");
}

void windows_end(const struct annotation_mark *mark)
{
	PyObject *space;

	if (!windows.session || windows.owner != mark || getpid() != windows.pid)
		return;
	space = stop_session();
	read_clocks(&windows.head.end_ticks, &windows.head.end_realtime_ns);
	if (space && windows.make)
		write_space(space);
	Py_XDECREF(space);
}

/* __init__ of a session: the program's own may not find ours open. */
static PyObject *session_init(PyObject *self, PyObject *const *args, Py_ssize_t count,
			      PyObject *keywords)
{
	if (windows.session && !windows.making && getpid() == windows.pid) {
		Py_XDECREF(stop_session());
		kymo_mark("kymo.xla", "a window ended early: the program profiles itself");
	}
	return jax_call(windows.init, self, args, count, keywords);
}

static PyMethodDef session_def = { "__init__", (PyCFunction)(void (*)(void))session_init,
				   METH_FASTCALL | METH_KEYWORDS, NULL };

int windows_set(PyObject *make, PyObject *sessions, uint32_t every)
{
	const char *path = getenv("KYMO_XLA_FILE");

	if (windows.init || !path)
		return 0;
	windows.file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
	if (windows.file < 0) {
		kymo_mark("kymo.xla", "no windows of XLA: the file of kymo run cannot be opened");
		return 0;
	}
	if (jax_replace(sessions, &session_def, &windows.init))
		return -1;
	windows.every = every ? every : 1;
	windows.pid = getpid();
	windows.make = Py_NewRef(make);
	return 0;
}
