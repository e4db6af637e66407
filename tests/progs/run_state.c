/* Prints what a program can see of how it was started. Recording must not change a byte of it. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kymo/kymo.h>

static void print_lines(const char *path, const char *const *keys)
{
	char line[512];
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file))
		for (const char *const *key = keys; *key; key++)
			if (!strncmp(line, *key, strlen(*key)))
				fputs(line, stdout);
	if (file)
		fclose(file);
}

static void print_descriptors(void)
{
	for (int fd = 0; fd < 256; fd++) {
		struct stat st;

		if (fcntl(fd, F_GETFD) >= 0 && !fstat(fd, &st))
			printf("fd %d flags %d type %o\n", fd, fcntl(fd, F_GETFD),
			       (unsigned)st.st_mode & S_IFMT);
	}
}

static void print_environment(char **variables)
{
	for (; *variables; variables++)
		if (strncmp(*variables, "KYMO", 4) && strncmp(*variables, "_=", 2) &&
		    strncmp(*variables, "INTEL_LIBITTNOTIFY64=", 21) &&
		    strncmp(*variables, "NVTX_INJECTION64_PATH=", 22))
			puts(*variables);
}

int main(int argc, char **argv, char **variables)
{
	static const char *const keys[] = { "SigBlk", "SigIgn", "SigCgt", "SigPnd",
					    "ShdPnd", "Umask",	"Groups", NULL };
	char directory[1024], line[256];
	struct rlimit limit;

	KYMO_SCOPE("state");
	for (int i = 0; i < argc; i++)
		printf("argument %d <%s>\n", i, argv[i]);
	printf("directory %s\n", getcwd(directory, sizeof(directory)));
	print_environment(variables);
	print_lines("/proc/self/status", keys);
	print_descriptors();
	for (int resource = 0; resource < RLIMIT_NLIMITS; resource++)
		if (!getrlimit(resource, &limit))
			printf("limit %d %llu %llu\n", resource, (unsigned long long)limit.rlim_cur,
			       (unsigned long long)limit.rlim_max);
	printf("session same as group leader's: %d, terminal group: %d\n",
	       getsid(0) == getsid(getpgrp()), tcgetpgrp(0) == getpgrp());
	printf("priority %d\n", getpriority(PRIO_PROCESS, 0));
	while (fgets(line, sizeof(line), stdin))
		printf("input %s", line);
	fprintf(stderr, "to stderr\n");
	return argc > 1 ? atoi(argv[1]) : 0;
}
