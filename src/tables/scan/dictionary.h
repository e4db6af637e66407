/* Vectors of all names and threads of a recording, built once per session and shared by the
   threads of DuckDB. */
#ifndef KYMO_TABLES_SCAN_DICTIONARY_H
#define KYMO_TABLES_SCAN_DICTIONARY_H

#include "tables/session.h"

/* The vector, made at its first use; NULL: no memory. Any thread. */
duckdb_vector dictionary_get(struct tables *tables, enum session_dictionary which);
void dictionary_fini(struct tables *tables);
/* A function of C++ as it is written: it is recorded as the linker calls it, since names are not
   worked out inside of malloc. To be freed; NULL: it is none. */
char *dictionary_demangled(const struct store_name *name);

#endif
