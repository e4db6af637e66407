#include "tables/scan/own_function.h"

#include <string.h>

#include "collect/backtrace/own_code.h"

/* Packages that surround own code in traces, and modules of the standard library that do. */
static const char *const libraries[] = {
	"torch/",
	"torchvision/",
	"torchaudio/",
	"triton/",
	"numpy/",
	"functorch/",
	"asyncio/",
	"concurrent/",
	"multiprocessing/",
	"importlib/",
	"collections/",
	"logging/",
	"json/",
	"threading.py",
	"contextlib.py",
	"functools.py",
	"runpy.py",
	"queue.py",
	"selectors.py",
	"socket.py",
	"typing.py",
	"enum.py",
	"copy.py",
	"abc.py",
	"inspect.py",
	"random.py",
	"weakref.py",
	"dataclasses.py",
	"warnings.py",
	"traceback.py",
	"<",
};

static bool is_library(const char *file, size_t bytes)
{
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		const size_t length = strlen(libraries[i]);

		if (bytes >= length && !memcmp(file, libraries[i], length))
			return true;
	}
	return false;
}

bool own_function_is(const struct recording *recording, const struct store_name *name)
{
	if (name->source != KYMO_SOURCE_PYTHON || !name->file_bytes || !name->line ||
	    is_library(name->file, name->file_bytes))
		return false;
	return own_code_is(name->file, name->file_bytes, recording->run.cwd);
}
