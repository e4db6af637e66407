/* Vectors of all names and threads of a recording, built once per session and shared by DuckDB's
   threads. */
#ifndef KYMO_TABLES_SCAN_DICTIONARY_H
#define KYMO_TABLES_SCAN_DICTIONARY_H

#include "tables/session.h"

/* The vector, built on first use; NULL if there is no memory. Any thread may call it. */
duckdb_vector dictionary_get(struct tables *tables, enum session_dictionary which);
void dictionary_fini(struct tables *tables);
/* The demangled name of a C++ function; the recorder stores the mangled one, since it must not
   demangle inside malloc. The caller frees it; NULL if the name is not mangled. */
char *dictionary_demangled(const struct store_name *name);

#endif
