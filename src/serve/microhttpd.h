/* libmicrohttpd as a struct of function pointers, loaded on demand: it depends on a TLS library,
   and only `kymo serve` needs it. */
#ifndef KYMO_SERVE_MICROHTTPD_H
#define KYMO_SERVE_MICROHTTPD_H

#include <microhttpd.h>

#include "base/error.h"

/* clang-format off */
#define MHD_FUNCTIONS(X) \
	X(start_daemon) X(get_daemon_info) X(queue_response) X(create_response_from_buffer) \
	X(create_response_from_fd) X(create_response_from_callback) X(destroy_response) \
	X(add_response_header) X(lookup_connection_value) X(get_connection_values) \
	X(get_connection_values_n) \
	X(suspend_connection) X(resume_connection) X(get_connection_info) X(set_connection_option)
/* clang-format on */

struct microhttpd {
#define X(name) __typeof__(&MHD_##name) name;
	MHD_FUNCTIONS(X)
#undef X
};

extern struct microhttpd microhttpd; /* all NULL until microhttpd_load() has returned 0 */
int microhttpd_load(struct kymo_error *err);

#endif
