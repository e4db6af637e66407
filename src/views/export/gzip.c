#include "views/export/gzip.h"

#include <errno.h>
#include <string.h>

#define BLOCK_BYTES 65535 /* a block's length has 16 bits */

static uint32_t crc_of(uint32_t crc, const unsigned char *bytes, size_t count)
{
	static uint32_t table[256];

	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t value = i;

			for (int bit = 0; bit < 8; bit++)
				value = value & 1 ? 0xedb88320u ^ value >> 1 : value >> 1;
			table[i] = value;
		}
	crc = ~crc;
	for (size_t i = 0; i < count; i++)
		crc = table[(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
	return ~crc;
}

static int gzip_put(struct gzip *gzip, const void *bytes, size_t count, struct kymo_error *err)
{
	errno = 0;
	if (fwrite(bytes, 1, count, gzip->out) == count)
		return 0;
	return error_set(err, errno ? errno : EIO, "cannot write the result: %s", strerror(errno));
}

static int put_block(struct gzip *gzip, const void *bytes, size_t count, bool last,
		     struct kymo_error *err)
{
	unsigned char head[5] = { last, (unsigned char)count, (unsigned char)(count >> 8),
				  (unsigned char)~count, (unsigned char)(~count >> 8) };
	int rc = gzip_put(gzip, head, sizeof(head), err);

	return rc ? rc : gzip_put(gzip, bytes, count, err);
}

static int gzip_put_word(struct gzip *gzip, uint32_t word, struct kymo_error *err)
{
	unsigned char bytes[4] = { (unsigned char)word, (unsigned char)(word >> 8),
				   (unsigned char)(word >> 16), (unsigned char)(word >> 24) };

	return gzip_put(gzip, bytes, sizeof(bytes), err);
}

void gzip_begin(struct gzip *gzip, FILE *out)
{
	/* Deflate, no flags, no time, an unknown system: the same input gives the same file. */
	static const unsigned char head[10] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255 };

	*gzip = (struct gzip){ .out = out };
	gzip_put(gzip, head, sizeof(head), NULL); /* a failure shows at the next write */
}

int gzip_write(struct gzip *gzip, struct buf *buf, struct kymo_error *err)
{
	size_t count;
	int rc = 0;

	if (buf->failed)
		return error_set(err, ENOMEM, "out of memory while writing the result");
	gzip->crc = crc_of(gzip->crc, (const unsigned char *)buf_get(buf), buf->used);
	gzip->bytes += (uint32_t)buf->used;
	for (size_t at = 0; !rc && at < buf->used; at += count) {
		count = buf->used - at < BLOCK_BYTES ? buf->used - at : BLOCK_BYTES;
		rc = put_block(gzip, buf->data + at, count, false, err);
	}
	buf_reset(buf);
	return rc;
}

int gzip_end(struct gzip *gzip, struct kymo_error *err)
{
	int rc = put_block(gzip, "", 0, true, err);

	if (!rc)
		rc = gzip_put_word(gzip, gzip->crc, err);
	if (!rc)
		rc = gzip_put_word(gzip, gzip->bytes, err);
	if (!rc && (fflush(gzip->out) || ferror(gzip->out)))
		rc = error_set(err, errno ? errno : EIO, "cannot write the result: %s",
			       strerror(errno));
	return rc;
}
