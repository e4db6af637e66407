#include "import/input/protobuf_stream.h"

bool protobuf_stream_next(struct input *input, struct json_scan *scan, struct protobuf_field *out,
			  bool *bad)
{
	for (;;) {
		struct protobuf_reader reader = { (const unsigned char *)scan->at,
						  (const unsigned char *)scan->end, false };

		if (scan->at && protobuf_read_next(&reader, out)) {
			scan->at = (const char *)reader.at;
			return true;
		}
		if (!input_more(input, scan)) {
			*bad = scan->at != scan->end;
			return false;
		}
	}
}
