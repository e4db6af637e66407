#include "views/term/target.h"

#include <stdio.h>

#include "import/import.h"
#include "views/term/progress.h"
#include "views/term/text.h"

static void target_progress(void *context, uint64_t done, uint64_t all)
{
	progress_at(context, done, all);
}

static void target_say(void *context, const char *sentence)
{
	progress_end(context);
	text_line(stderr, "kymo: %s", sentence);
}

int target_resolve_files(const char *const *files, size_t count, char *out, size_t out_bytes,
			 struct kymo_error *err)
{
	struct progress progress;
	const struct import_options how = { .progress = target_progress,
					    .say = target_say,
					    .context = &progress };
	int rc;

	progress_begin(&progress, "importing", "bytes");
	rc = count == 1 ? import_resolve(files[0], out, out_bytes, &how, err)
			: import_resolve_files(files, count, out, out_bytes, &how, err);
	progress_end(&progress);
	return rc;
}

int target_resolve(const char *target, char *out, size_t out_bytes, struct kymo_error *err)
{
	return target_resolve_files(&target, 1, out, out_bytes, err);
}
