/* The script and the style of HTML reports, as tools/bundle-web makes them of web/src; absent with KYMO_NO_WEB. */
#ifndef KYMO_VIEWS_WEB_H
#define KYMO_VIEWS_WEB_H

#include <stddef.h>

extern const unsigned char web_script[];
extern const size_t web_script_bytes;
extern const char web_script_hash[]; /* "sha256-…", for the page's policy */
extern const unsigned char web_style[];
extern const size_t web_style_bytes;
extern const char web_style_hash[];

#endif
