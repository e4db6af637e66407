/* In place of input_gzip.c where zlib was not found. */
#include "import/input/input.h"

struct input_gzip *input_gzip_open(void)
{
	return NULL;
}

void input_gzip_close(struct input_gzip *gzip)
{
	(void)gzip;
}

long input_gzip_read(struct input *input, char *out, size_t bytes)
{
	(void)input;
	(void)out;
	(void)bytes;
	return -1;
}
