/* Demangles C++ names. */
#ifndef KYMO_COLLECT_NATIVE_DEMANGLE_H
#define KYMO_COLLECT_NATIVE_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* True for a mangled name. text need not be NUL-terminated. */
static inline bool demangle_is_mangled(const char *text, size_t bytes)
{
	return bytes > 2 && text[0] == '_' && text[1] == 'Z';
}
/* The caller frees it. NULL: not a mangled name, or libstdc++ is not installed. */
char *demangle(const char *symbol);

#endif
