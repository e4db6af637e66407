/* Which Python functions of a recording's names are the program's own code. */
#ifndef KYMO_TABLES_SCAN_OWN_FUNCTION_H
#define KYMO_TABLES_SCAN_OWN_FUNCTION_H

#include "store/store.h"

/* As own_code_is(), and for the short paths of imported traces, which begin below a directory of
   sys.path: torch/nn/modules/linear.py and threading.py are not own code. */
bool own_function_is(const struct recording *recording, const struct store_name *name);

#endif
