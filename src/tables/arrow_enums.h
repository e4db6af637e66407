/* An ENUM is a dictionary in Arrow. nanoarrow cannot write dictionaries, so the values are
   written as VARCHAR. */
#ifndef KYMO_TABLES_ARROW_ENUMS_H
#define KYMO_TABLES_ARROW_ENUMS_H

#include <nanoarrow/nanoarrow.h>

/* The columns as they are written; the caller releases the schema. 0 or an errno. */
int arrow_enums_plain_schema(const struct ArrowSchema *schema, struct ArrowSchema *out);
/* Converts the dictionaries of one chunk, at any depth, to the plain schema. 0 or an errno. */
int arrow_enums_plain_array(const struct ArrowSchema *schema, struct ArrowArray *array,
			    struct ArrowError *why);

#endif
