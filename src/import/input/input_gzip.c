/* Unpacks gzip with zlib, member after member. */
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "import/input/input.h"

#define PACKED_BYTES (256u << 10)
/* Traces shrink to a tenth or a thirtieth; more than this is a mistake or an attack. */
#define BOMB_RATIO 300u
#define BOMB_BYTES (64u << 20)

struct input_gzip {
	z_stream stream;
	uint64_t out_bytes;
	bool at_member; /* the next byte begins a member */
	unsigned char packed[PACKED_BYTES];
};

struct input_gzip *input_gzip_open(void)
{
	struct input_gzip *gzip = calloc(1, sizeof(*gzip));

	if (gzip && inflateInit2(&gzip->stream, 15 + 16) != Z_OK) {
		free(gzip);
		return NULL;
	}
	return gzip;
}

void input_gzip_close(struct input_gzip *gzip)
{
	inflateEnd(&gzip->stream);
	free(gzip);
}

/* False: no more bytes in the file. */
static bool gzip_refill(struct input *input, struct input_gzip *gzip)
{
	long got = input_raw(input, (char *)gzip->packed, PACKED_BYTES);

	gzip->stream.next_in = gzip->packed;
	gzip->stream.avail_in = got > 0 ? (uInt)got : 0;
	return got > 0;
}

static long gzip_fails(struct input *input, int code)
{
	if (code == Z_MEM_ERROR)
		error_set(&input->damage, ENOMEM, "no memory to unpack it");
	else
		error_set(&input->damage, EPROTO, "its compressed bytes are damaged");
	return -1;
}

static bool is_bomb(const struct input *input, const struct input_gzip *gzip)
{
	return gzip->out_bytes > BOMB_BYTES && gzip->out_bytes / BOMB_RATIO > input->read_bytes;
}

/* After the end of a member: another one, or bytes that are none (padding, as tapes have). */
static bool begin_member(struct input *input, struct input_gzip *gzip)
{
	gzip->at_member = false;
	if (!gzip->stream.avail_in && !gzip_refill(input, gzip))
		return false;
	return *gzip->stream.next_in == 0x1f && inflateReset(&gzip->stream) == Z_OK;
}

static long gzip_made(struct input *input, struct input_gzip *gzip, size_t bytes)
{
	long made = (long)(bytes - gzip->stream.avail_out);

	gzip->out_bytes += (uint64_t)made;
	if (!is_bomb(input, gzip))
		return made;
	error_set(&input->damage, EFBIG, "it unpacks to more than %u times its size", BOMB_RATIO);
	return -1;
}

long input_gzip_read(struct input *input, char *out, size_t bytes)
{
	struct input_gzip *gzip = input->gzip;
	int code = Z_OK;

	gzip->stream.next_out = (unsigned char *)out;
	gzip->stream.avail_out = (uInt)bytes;
	while (gzip->stream.avail_out == bytes) {
		if (gzip->at_member && !begin_member(input, gzip))
			return 0;
		if (!gzip->stream.avail_in && !gzip_refill(input, gzip)) {
			if (!input->damage.code)
				error_set(&input->damage, ENODATA,
					  "its compressed bytes end early");
			return -1;
		}
		code = inflate(&gzip->stream, Z_NO_FLUSH);
		gzip->at_member = code == Z_STREAM_END;
		if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
			return gzip->stream.avail_out < bytes ? gzip_made(input, gzip, bytes)
							      : gzip_fails(input, code);
	}
	return gzip_made(input, gzip, bytes);
}
