/* Python objects of another process: texts, dictionaries, attributes, and a repr made from
   outside. */
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

/* What a word of a frame refers to: 3.14 keeps marks in its lowest bits. 0: no object. */
uint64_t pyobj_reference(const struct pymemory *memory, uint64_t word);
/* A str as UTF-8, NUL-ended, cut at a character; its bytes, or a negative errno: no str can be read
   there. */
ssize_t pyobj_text(const struct pymemory *memory, uint64_t object, char *out, size_t out_bytes);
/* Calls `each` for every key and value; until it gives false. False: no dict can be read there. */
bool pyobj_dict_each(const struct pymemory *memory, uint64_t dict,
		     bool (*each)(void *context, uint64_t key, uint64_t value), void *context);
/* The value of a key that is a str; 0: none. */
uint64_t pyobj_dict_get(const struct pymemory *memory, uint64_t dict, const char *key);
/* An attribute of an instance, from its dict or its inline values; 0: none. */
uint64_t pyobj_attribute(const struct pymemory *memory, uint64_t object, const char *name);
/* The type's name, as "dict" or "torch.Tensor". False: cannot be read. */
bool pyobj_type(const struct pymemory *memory, uint64_t object, char *out, size_t out_bytes);
/* Appends what repr() would say of simple values, and type and size of others: at most `most`
   bytes. */
void pyobj_repr(const struct pymemory *memory, uint64_t object, struct buf *out, size_t most);

#endif
