/* JSON that is longer than the window: values are taken one by one, each whole in the window. */
#ifndef KYMO_IMPORT_JSON_STREAM_H
#define KYMO_IMPORT_JSON_STREAM_H

#include "import/input/input.h"

struct json_stream {
	struct input *input;
	struct json_scan scan;
};

/* Reads more of the file if the scan has reached the end of the window. False: there is none. */
bool json_stream_more(struct json_stream *stream);
/* The next byte that is not white space; 0: the file has ended. Moves the window: texts that were
   taken before are not valid any more. */
char json_stream_next(struct json_stream *stream);
/* Skips a value of any length. False: it does not end. */
bool json_stream_skip(struct json_stream *stream);
/* As json_scan_key() and json_scan_item(). */
bool json_stream_key(struct json_stream *stream, struct json_text *key);
bool json_stream_item(struct json_stream *stream);
/* Calls take() until the value at the scan is whole in the window. False: it does not end, is
   longer than the largest window, or is not JSON. */
bool json_stream_value(struct json_stream *stream,
		       bool (*take)(void *context, struct json_scan *scan), void *context);

#endif
