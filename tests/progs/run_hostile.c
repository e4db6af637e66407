/* Records, then damages its own files in the way that its argument names, and goes on. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

static void damage(const char *how)
{
	DIR *directory = opendir(kymo_directory());
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		const char *dot = strrchr(entry->d_name, '.');
		int fd;

		if (entry->d_name[0] == '.')
			continue;
		fd = openat(dirfd(directory), entry->d_name, O_RDWR | O_CLOEXEC);
		if (!strcmp(how, "unlink"))
			unlinkat(dirfd(directory), entry->d_name, 0);
		/* Not what is mapped by this process and written again: that would end it, by its
		   own doing. */
		if (!strcmp(how, "truncate") && dot && !strcmp(dot, ".0") && ftruncate(fd, 10))
			perror("truncate");
		if (!strcmp(how, "claim") && dot && !strcmp(dot, ".head")) {
			unsigned long long huge[2] = { 0, ~0ull };

			if (pwrite(fd, huge, sizeof(huge), 4096 + 128) < 0)
				perror("claim");
		}
		close(fd);
	}
	if (directory)
		closedir(directory);
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 20000; i++) {
		KYMO_SCOPE("hostile");
	}
	damage(argc > 1 ? argv[1] : "");
	usleep(300000);
	puts("done");
	return 3;
}
