/* Reads Python objects of another process: strings, dictionaries, attributes, and a repr. */
#ifndef KYMO_COLLECT_PYTHON_PYOBJ_H
#define KYMO_COLLECT_PYTHON_PYOBJ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "collect/python/pylayout.h"

struct pymemory {
	pid_t pid;
	const struct pylayout *layout;
};

/* The object that a word of a frame refers to: 3.14 has tags in the lowest bits. 0: no object. */
uint64_t pyobj_reference(const struct pymemory *memory, uint64_t word);
/* Reads a str as NUL-terminated UTF-8, truncated at a character. Returns its bytes, or a negative
   errno: not a readable str. */
ssize_t pyobj_text(const struct pymemory *memory, uint64_t object, char *out, size_t out_bytes);
/* Calls `each` for every key and value, until it returns false. False: not a readable dict. */
bool pyobj_dict_each(const struct pymemory *memory, uint64_t dict,
		     bool (*each)(void *context, uint64_t key, uint64_t value), void *context);
/* The value of a str key; 0: none. */
uint64_t pyobj_dict_get(const struct pymemory *memory, uint64_t dict, const char *key);
/* An attribute of an instance, from its dict or its inline values; 0: none. */
uint64_t pyobj_attribute(const struct pymemory *memory, uint64_t object, const char *name);
/* The name of the type, such as "dict" or "torch.Tensor". False: not readable. */
bool pyobj_type(const struct pymemory *memory, uint64_t object, char *out, size_t out_bytes);
/* Appends the repr() of simple values, or the type and size of others, at most `most` bytes. */
void pyobj_repr(const struct pymemory *memory, uint64_t object, struct buf *out, size_t most);

#endif
