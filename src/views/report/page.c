#include "views/report/page.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "views/query/json.h"
#include "views/report/report_file.h"
#include "views/web.h"

/* `<` must not occur inside <script>; JSON has an escape for it. */
static void write_data(FILE *out, const char *json, size_t bytes)
{
	const char *end = json + bytes, *at;

	for (; (at = memchr(json, '<', (size_t)(end - json))); json = at + 1) {
		fwrite(json, 1, (size_t)(at - json), out);
		fputs("\\u003c", out);
	}
	fwrite(json, 1, (size_t)(end - json), out);
}

static void write_base64(FILE *out, const unsigned char *data, size_t bytes)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char block[4096];
	size_t used = 0;

	for (size_t i = 0; i < bytes; i += 3) {
		size_t left = bytes - i;
		uint32_t word = (uint32_t)data[i] << 16 |
				(left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
				(left > 2 ? (uint32_t)data[i + 2] : 0);

		block[used++] = letters[word >> 18];
		block[used++] = letters[word >> 12 & 63];
		block[used++] = left > 1 ? letters[word >> 6 & 63] : '=';
		block[used++] = left > 2 ? letters[word & 63] : '=';
		if (used == sizeof(block)) {
			fwrite(block, 1, used, out);
			used = 0;
		}
	}
	fwrite(block, 1, used, out);
}

/* Only `&` and `<` need an escape in a title. */
static void write_title(FILE *out, const char *text)
{
	struct buf shown = { 0 };

	json_text(&shown, text, strlen(text));
	for (size_t i = 1; i + 1 < shown.used; i++) {
		char c = shown.data[i];

		if (c == '<' || c == '&')
			fputs(c == '<' ? "&lt;" : "&amp;", out);
		else
			fputc(c, out);
	}
	buf_fini(&shown);
}

void page_write(FILE *out, const char *title, const struct buf *json, const unsigned char *zones,
		size_t zone_bytes)
{
	fprintf(out,
		REPORT_HTML_MARK
		"<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"script-src '%s'; style-src '%s'; "
		"img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for "
		"'script'\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta name=\"referrer\" content=\"no-referrer\">\n<title>",
		web_script_hash, web_style_hash);
	write_title(out, title);
	fputs(" · kymo</title>\n<style>", out);
	fwrite(web_style, 1, web_style_bytes, out);
	fputs("</style></head>\n<body><div id=\"app\">This report needs JavaScript, which is "
	      "disabled "
	      "here.</div>\n"
	      "<script type=\"application/json\" id=\"kymo-data\">",
	      out);
	write_data(out, buf_get(json), json->used);
	fputs("</script>\n<script type=\"application/octet-stream\" id=\"kymo-zones\">", out);
	write_base64(out, zones, zone_bytes);
	fputs("</script>\n<script>", out);
	fwrite(web_script, 1, web_script_bytes, out);
	fputs("</script></body></html>\n", out);
}
