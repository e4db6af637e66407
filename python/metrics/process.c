/* Memory of the process: the fallback of MemoryTracker. */
#include "metrics.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

PyObject *resident(PyObject *module, PyObject *unused)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long size = 0, pages = 0;
	struct rusage usage = { 0 };

	(void)module, (void)unused;
	if (file) {
		if (fscanf(file, "%llu %llu", &size, &pages) != 2)
			pages = 0;
		fclose(file);
	}
	getrusage(RUSAGE_SELF, &usage);
	return Py_BuildValue("(KK)", pages * (unsigned long long)sysconf(_SC_PAGESIZE),
			     (unsigned long long)usage.ru_maxrss * 1024u);
}
