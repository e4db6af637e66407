/* The script and the style of HTML reports, and the viewer's files, as tools/bundle-web makes them
   of web/src. A build without them has no web_assets (no_web.c). */
#ifndef KYMO_VIEWS_WEB_H
#define KYMO_VIEWS_WEB_H

#include <stddef.h>

extern const unsigned char web_script[];
extern const size_t web_script_bytes;
extern const char web_script_hash[]; /* "sha256-…", for the page's policy */
extern const unsigned char web_style[];
extern const size_t web_style_bytes;
extern const char web_style_hash[];

/* The files of the viewer's page, by the name after /assets/. Ended by a name of NULL; empty
   without web/src/live.js. */
struct web_asset {
	const char *name, *type, *hash;
	const unsigned char *data;
	size_t bytes;
	const unsigned char *gzip; /* the same, gzipped; no bytes: not worth it */
	size_t gzip_bytes;
};
extern const struct web_asset web_assets[];

#endif
