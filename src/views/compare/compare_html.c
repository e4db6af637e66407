/* The comparison as a page: the same document as JSON, drawn by web/src/views/compare.js. */
#include "views/compare/compare.h"
#include "views/report/page.h"

#include <errno.h>

int compare_html(const struct compare *compare, FILE *out, struct kymo_error *err)
{
	struct buf json = { 0 };
	char title[300];

	buf_text(&json, "{\"compare\":");
	compare_json(compare, &json);
	buf_char(&json, '}');
	snprintf(title, sizeof(title), "Compare · %s", compare->runs[0].program);
	if (!json.failed)
		page_write(out, title, &json, NULL, 0);
	buf_fini(&json);
	return json.failed ? error_set(err, ENOMEM, "out of memory for the page") : 0;
}
