/* Names of C++ as they are written. */
#ifndef KYMO_COLLECT_NATIVE_DEMANGLE_H
#define KYMO_COLLECT_NATIVE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Does it look like one of the linker's? text needs no NUL. */
static inline bool demangle_wants(const char *text, size_t bytes)
{
	return bytes > 2 && text[0] == '_' && text[1] == 'Z';
}
/* To be freed; NULL: it is none, or there is no libstdc++ here. */
char *demangle(const char *symbol);

#endif
