/* HTML output, where esbuild, uPlot or zlib was missing at build time. */
#include <errno.h>

#include "views/compare/compare.h"
#include "views/report/report_file.h"
#include "views/web.h"

const struct web_asset web_assets[] = { { 0 } };

static int no_web(struct kymo_error *err)
{
	return error_set(err, ENOTSUP,
			 "this kymo was built without HTML reports, since esbuild, uPlot or zlib "
			 "was missing; make setup fetches them, then make");
}

int report_html(struct tables *tables, struct report_options *options, FILE *out,
		struct kymo_error *err)
{
	(void)tables;
	(void)options;
	(void)out;
	return no_web(err);
}

int compare_html(const struct compare *compare, FILE *out, struct kymo_error *err)
{
	(void)compare;
	(void)out;
	return no_web(err);
}
