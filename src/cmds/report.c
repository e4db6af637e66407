#include "views/report.h"

#include <stdio.h>

#include "cmds/cmds.h"
#include "store/store.h"
#include "tables/tables.h"
#include "views/text.h"

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
		rc = report_print(tables, subtract_overhead, &style, stdout, err);
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
