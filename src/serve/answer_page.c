/* The page and what belongs to it: built in, nothing is read from disk. */
#include <stdio.h>
#include <string.h>

#include "serve/inside.h"
#include "views/web.h"

static const char page[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	"<title>kymo</title>\n<link rel=\"icon\" href=\"data:,\">\n"
	"<link rel=\"stylesheet\" href=\"/assets/live.css\"></head>\n"
	"<body><div id=\"app\">The viewer is drawn by a script; here scripts are off.</div>\n"
	"<script type=\"module\" src=\"/assets/live.js\"></script></body></html>\n";

static const char bare_page[] =
	"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>kymo</title></head><body>\n"
	"<h1>kymo</h1><p>This kymo was built without the viewer's page. "
	"<a href=\"/api/report?format=html\">The report of the latest recording</a>, "
	"<a href=\"/api/targets\">all recordings</a>.</p></body></html>\n";

#ifdef KYMO_NO_WEB
static const struct web_asset *find_asset(const char *name)
{
	(void)name;
	return NULL;
}
#else
static const struct web_asset *find_asset(const char *name)
{
	for (const struct web_asset *asset = web_assets; asset->name; asset++)
		if (!strcmp(asset->name, name))
			return asset;
	return NULL;
}
#endif

void answer_page(struct request *request)
{
	bool built = find_asset("live.js");

	request->type = "text/html; charset=utf-8";
	request->asset = built ? page : bare_page;
	request->asset_bytes = built ? sizeof(page) - 1 : sizeof(bare_page) - 1;
	snprintf(request->etag, sizeof(request->etag), "\"page-%s\"", KYMO_VERSION);
}

void answer_asset(struct request *request)
{
	const char *name = request_get(request, "asset");
	const struct web_asset *asset = name ? find_asset(name) : NULL;

	if (!asset) {
		answer_error(request, 404, NULL, "there is no such file here");
		return;
	}
	request->type = asset->type;
	request->asset_gzip = request->gzip && asset->gzip_bytes;
	request->asset = request->asset_gzip ? asset->gzip : asset->data;
	request->asset_bytes = request->asset_gzip ? asset->gzip_bytes : asset->bytes;
	snprintf(request->etag, sizeof(request->etag), "\"%.40s%s\"", asset->hash,
		 request->asset_gzip ? "-gz" : "");
}
