#include "views/report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmds/cmds.h"
#include "store/store.h"
#include "tables/tables.h"
#include "views/progress.h"
#include "views/text.h"

static struct progress progress;

static void show_progress(uint64_t done, uint64_t all)
{
	progress_at(&progress, done, all);
}

/* Written when it is whole, so that lines of it and of progress do not mix on the terminal. */
static int gather_report(struct tables *tables, bool subtract_overhead,
			 const struct text_style *style, struct kymo_error *err)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	int rc;

	if (!out)
		return error_set(err, ENOMEM, "no memory for the report");
	progress_begin(&progress, "reading", "rows");
	tables_watch(tables, show_progress);
	rc = report_print(tables, subtract_overhead, style, out, err);
	tables_watch(tables, NULL);
	progress_end(&progress);
	if (!fclose(out) && text)
		fwrite(text, 1, bytes, stdout);
	free(text);
	return rc;
}

static int print_report(const char *target, bool subtract_overhead, struct kymo_error *err)
{
	struct tables_options options = { 0 };
	struct text_style style = text_style_of(stdout);
	char path[KYMO_PATH_BYTES];
	struct tables *tables = NULL;
	int rc = store_resolve(target, path, sizeof(path), err);

	if (!rc)
		rc = tables_open(path, &options, &tables, err);
	if (!rc) {
		cmds_interruptible(tables);
		rc = gather_report(tables, subtract_overhead, &style, err);
		cmds_interruptible(NULL);
	}
	tables_close(tables);
	return rc;
}

int cmd_report(int argc, char **argv)
{
	struct kymo_error err = { 0 };
	struct cmds_args args;
	bool subtract_overhead = false;
	int status;

	cmds_args_init(&args, "report", argc, argv);
	while (cmds_next(&args, &status))
		subtract_overhead = true;
	if (status >= 0)
		return status;
	if (args.word_count > 1)
		return cmds_wrong("report", "one target at a time, not %zu", args.word_count);
	status = print_report(args.word_count ? args.words[0] : NULL, subtract_overhead, &err)
			 ? cmds_fail("report", &err)
			 : cmds_finish("report");
	return cmds_interrupted() ? CMDS_INTERRUPTED : status;
}
