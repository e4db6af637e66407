/* What of export.h needs zlib, where its header was missing at build time. */
#include <errno.h>

#include "views/export/export.h"

static int no_zlib_write(struct export *export)
{
	return error_set(export->err, ENOTSUP,
			 "this kymo was built without zlib, which pprof files need; install "
			 "zlib1g-dev, then run make");
}

const struct export_format export_pprof = {
	.name = "pprof",
	.extension = ".pb.gz",
	.about = "not in this build: it needs zlib",
	.binary = true,
	.media_type = "application/octet-stream",
	.download = "kymo.pb.gz",
	.write = no_zlib_write,
};
