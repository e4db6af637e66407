/* The page and its assets, which are compiled in. */
#include <stdio.h>
#include <string.h>

#include "serve/serve_inside.h"
#include "views/web.h"

/* The head is left open for another style. */
static const char page_begin[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<title>kymo</title>\n<link rel=\"icon\" href=\"data:,\">\n"
	"<link rel=\"stylesheet\" href=\"/assets/live.css\">\n";
static const char page_zoom[] = "<link rel=\"stylesheet\" href=\"/assets/zoom.css\">\n";
static const char page_end[] =
	"</head>\n<body><div id=\"app\">The viewer is drawn by a script; here scripts are "
	"off.</div>\n"
	"<script type=\"module\" src=\"/assets/live.js\"></script></body></html>\n";

static const char bare_page[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta "
	"charset=\"utf-8\"><title>kymo</title></head><body>\n"
	"<h1>kymo</h1><p>This kymo was built without the viewer's page. "
	"<a href=\"/api/report?format=html\">The report of the latest recording</a>, "
	"<a href=\"/api/targets\">all recordings</a>.</p></body></html>\n";

static const struct web_asset *find_asset(const char *name)
{
	for (const struct web_asset *asset = web_assets; asset->name; asset++)
		if (!strcmp(asset->name, name))
			return asset;
	return NULL;
}

void answer_page(struct request *request)
{
	double zoom = request->serve->options.zoom;

	request->type = "text/html; charset=utf-8";
	if (find_asset("live.js")) {
		buf_text(&request->answer, page_begin);
		buf_text(&request->answer, zoom > 0 ? page_zoom : "");
		buf_text(&request->answer, page_end);
	} else {
		buf_text(&request->answer, bare_page);
	}
	snprintf(request->etag, sizeof(request->etag), "\"page-%s-%g\"", KYMO_VERSION, zoom);
}

static void answer_zoom(struct request *request)
{
	request->type = "text/css; charset=utf-8";
	buf_print(&request->answer, "html{zoom:%g}\n", request->serve->options.zoom);
}

void answer_asset(struct request *request)
{
	const char *name = request_get(request, "asset");
	const struct web_asset *asset = name ? find_asset(name) : NULL;

	if (name && !strcmp(name, "zoom.css") && request->serve->options.zoom > 0) {
		answer_zoom(request);
		return;
	}
	if (!asset) {
		answer_error(request, 404, NULL, "no such file");
		return;
	}
	request->type = asset->type;
	request->asset_gzip = request->gzip && asset->gzip_bytes;
	request->asset = request->asset_gzip ? asset->gzip : asset->data;
	request->asset_bytes = request->asset_gzip ? asset->gzip_bytes : asset->bytes;
	snprintf(request->etag, sizeof(request->etag), "\"%.40s%s\"", asset->hash,
		 request->asset_gzip ? "-gz" : "");
}
