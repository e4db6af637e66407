/* What clients of kymo serve send: no input may be read beyond its end, whatever it says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "serve/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	/* A copy of exactly that size: a byte too far is found. */
	char *copy = malloc(bytes ? bytes : 1);
	struct json_read json;
	size_t sum = 0;

	if (!copy)
		return 0;
	memcpy(copy, data, bytes);
	if (!json_read_object(copy, bytes, &json)) {
		for (size_t i = 0; i < json.count; i++)
			sum += strlen(json.fields[i].key) + strlen(json.fields[i].value);
		if (sum > bytes)
			abort();
		json_read_fini(&json);
	}
	free(copy);
	return 0;
}
