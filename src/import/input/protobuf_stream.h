/* The outermost fields of a protocol buffer that is longer than the window. */
#ifndef KYMO_IMPORT_PROTOBUF_STREAM_H
#define KYMO_IMPORT_PROTOBUF_STREAM_H

#include "import/input/input.h"
#include "import/input/protobuf_read.h"

/* Makes the next field whole in the window; the one before is not valid any more. False: the end of
   the file, or *bad. */
bool protobuf_stream_next(struct input *input, struct json_scan *scan, struct protobuf_field *out,
			  bool *bad);

#endif
