#include "import/input/json_stream.h"

bool json_stream_more(struct json_stream *stream)
{
	return stream->scan.state == JSON_MORE && input_more(stream->input, &stream->scan);
}

char json_stream_next(struct json_stream *stream)
{
	for (;;) {
		char c = json_scan_next(&stream->scan);

		if (c || stream->scan.state != JSON_MORE)
			return c;
		if (!input_more(stream->input, &stream->scan))
			return 0;
	}
}

bool json_stream_skip(struct json_stream *stream)
{
	struct json_skip skip = { 0 };

	while (!json_skip_more(&skip, &stream->scan)) {
		stream->scan.at = stream->scan.end;
		stream->scan.state = JSON_OK;
		if (!input_more(stream->input, &stream->scan))
			return false;
	}
	return true;
}

bool json_stream_key(struct json_stream *stream, struct json_text *key)
{
	for (;;) {
		const char *from = stream->scan.at;

		stream->scan.state = JSON_OK;
		if (json_scan_key(&stream->scan, key))
			return true;
		if (stream->scan.state == JSON_OK)
			return false;
		stream->scan.at = from;
		if (!json_stream_more(stream))
			return false;
	}
}

bool json_stream_item(struct json_stream *stream)
{
	for (;;) {
		const char *from = stream->scan.at;

		stream->scan.state = JSON_OK;
		if (json_scan_item(&stream->scan))
			return true;
		if (stream->scan.state == JSON_OK)
			return false;
		stream->scan.at = from;
		if (!json_stream_more(stream))
			return false;
	}
}

bool json_stream_value(struct json_stream *stream,
		       bool (*take)(void *context, struct json_scan *scan), void *context)
{
	for (;;) {
		const char *from = stream->scan.at;

		stream->scan.state = JSON_OK;
		if (take(context, &stream->scan))
			return true;
		stream->scan.at = from;
		if (!json_stream_more(stream))
			return false;
	}
}
