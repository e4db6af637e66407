#include "collect/budget.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALLEST_BYTES (1ull << 20) /* the first segments need as much */

static const struct {
	const char *word;
	size_t offset;
} keys[] = {
	{ "mem=", offsetof(struct budget, memory_bytes) },
	{ "disk=", offsetof(struct budget, disk_bytes) },
	{ "", offsetof(struct budget, memory_bytes) }, /* last: matches everything */
};

/* Bits to shift by for a suffix; -1: unknown suffix. */
static int suffix_shift(const char *suffix, size_t length)
{
	static const char letters[] = "KMGT";
	const char *at;

	if (!length)
		return 0;
	at = memchr(letters, toupper((unsigned char)*suffix), 4);
	if (!at)
		return -1;
	/* "G", "GB" and "GiB" mean the same. */
	if (length == 1 || (length == 2 && toupper((unsigned char)suffix[1]) == 'B') ||
	    (length == 3 && !strncasecmp(suffix + 1, "iB", 2)))
		return 10 * (int)(at - letters + 1);
	return -1;
}

static int parse_size(const char *text, size_t length, uint64_t *out)
{
	unsigned long long number;
	char *end;
	int shift;

	if (!length || !isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	number = strtoull(text, &end, 10);
	shift = suffix_shift(end, length - (size_t)(end - text));
	if (errno || shift < 0 || number > UINT64_MAX >> shift)
		return -EINVAL;
	*out = (uint64_t)number << shift;
	return *out < SMALLEST_BYTES ? -ERANGE : 0;
}

static int parse_part(const char *part, size_t length, struct budget *budget)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		size_t key = strlen(keys[i].word);

		if (length >= key && !strncmp(part, keys[i].word, key))
			return parse_size(part + key, length - key,
					  (uint64_t *)(void *)((char *)budget + keys[i].offset));
	}
	return -EINVAL;
}

int budget_parse(const char *text, struct budget *budget, struct kymo_error *err)
{
	struct budget wanted = *budget;
	const char *part = text;

	for (;;) {
		size_t length = strcspn(part, ",");
		int rc = parse_part(part, length, &wanted);

		if (rc == -ERANGE)
			return error_set(err, ERANGE, "\"%.*s\" is too small; the minimum is 1M",
					 (int)length, part);
		if (rc)
			return error_set(
				err, EINVAL,
				"\"%s\" is not a budget; use a form such as 1G or mem=1G,disk=4G",
				text);
		if (!part[length])
			break;
		part += length + 1;
	}
	*budget = wanted;
	return 0;
}

void budget_format(const struct budget *budget, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "mem=%llu,disk=%llu", (unsigned long long)budget->memory_bytes,
		 (unsigned long long)budget->disk_bytes);
}
