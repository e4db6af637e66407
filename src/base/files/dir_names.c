#include "base/files/dir_names.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

struct directory_record { /* as the kernel writes it */
	uint64_t inode;
	int64_t offset;
	unsigned short bytes;
	unsigned char type;
	char name[];
};

int dir_names_each(int directory, int (*each)(const char *name, void *context), void *context)
{
	char buffer[8192] __attribute__((aligned(8)));
	long got;
	int rc = 0;

	while (!rc && (got = syscall(SYS_getdents64, directory, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; !rc && at < got;) {
			const struct directory_record *record = (const void *)(buffer + at);

			rc = each(record->name, context);
			at += record->bytes;
		}
	}
	return rc;
}
