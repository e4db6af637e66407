/* The comparison as a page: the same document as JSON, drawn by web/src/views/compare.js. */
#include "views/compare/compare.h"
#include "views/report/page.h"

#include <errno.h>
#include <string.h>

/* The name of a recording, without the path. */
static const char *compare_html_name(const struct compare_run *run)
{
	const char *slash = strrchr(run->path, '/');

	return slash && slash[1] ? slash + 1 : run->path;
}

int compare_html(const struct compare *compare, FILE *out, struct kymo_error *err)
{
	struct buf json = { 0 };
	const struct compare_run *runs = compare->runs;
	char title[600];

	buf_text(&json, "{\"compare\":");
	compare_json(compare, &json);
	buf_char(&json, '}');
	snprintf(title, sizeof(title), "Compare · %.200s · %.200s", compare_html_name(&runs[0]),
		 compare_html_name(&runs[compare->a_count]));
	if (!json.failed)
		page_write(out, title, &json, NULL, 0);
	buf_fini(&json);
	return json.failed ? error_set(err, ENOMEM, "out of memory for the page") : 0;
}
