/* Source files of a recording for kymo serve: their list, or one with its lines and its text. */
#include <errno.h>
#include <string.h>

#include "serve/children/child.h"
#include "views/source/source_files.h"
#include "views/source/source_text.h"

static void child_source_list(const struct source_files *files, struct buf *out)
{
	const struct source_wanted totals = { .lines = false };

	buf_text(out, "{\"files\":[");
	for (size_t i = 0; i < files->count; i++) {
		buf_text(out, i ? ",\n" : "\n");
		source_files_json(files, &files->list[i], &totals, out);
	}
	buf_text(out, "]}\n");
}

/* A name that the recording does not have is never opened. */
static int child_source_one(const struct source_files *files, const char *name, struct buf *out,
			    struct kymo_error *err)
{
	const struct source_wanted all = { true, true, SOURCE_TEXT_MOST, NULL };
	const struct source_file *file = source_files_find(files, name);

	if (!file)
		return error_set(err, ESRCH, "the recording names no such source file");
	source_files_json(files, file, &all, out);
	return 0;
}

int child_source(struct tables *tables, const struct question *question, const char *sql, FILE *out,
		 struct kymo_error *err)
{
	struct source_files files;
	struct buf text = { 0 };
	int rc = source_files_gather(tables, &question->ranks, &files, err);

	if (!rc && sql[0])
		rc = child_source_one(&files, sql, &text, err);
	else if (!rc)
		child_source_list(&files, &text);
	if (!rc)
		rc = child_write(&text, out, err);
	source_files_fini(&files);
	buf_fini(&text);
	return rc;
}
