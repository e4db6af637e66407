#include "views/source/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format.h"

/* No link in the last part, no wait for a pipe, no terminal. */
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

/* "" if there is none. */
static const char *extension_of(const char *name)
{
	const char *slash = strrchr(name, '/');
	const char *dot = strrchr(slash ? slash : name, '.');

	return dot ? dot + 1 : "";
}

bool source_text_is_python(const char *name)
{
	const char *extension = extension_of(name);

	return !strcmp(extension, "py") || !strcmp(extension, "pyi") || !strcmp(extension, "pyx");
}

bool source_text_is_source(const char *name)
{
	static const char *const extensions[] = {
		"c",   "cc", "cl",  "cpp", "cu",    "cuh",   "cxx", "f90",  "go",
		"h",   "hh", "hpp", "hxx", "inc",   "inl",   "ipp", "java", "jl",
		"js",  "kt", "lua", "m",   "mjs",   "mm",    "pxd", "py",   "pyi",
		"pyx", "rb", "rs",  "s",   "scala", "swift", "ts",  "zig",
	};
	const char *extension = extension_of(name);

	for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++)
		if (!strcasecmp(extension, extensions[i]))
			return true;
	return false;
}

static void source_text_refuse(struct source_text *out, const char *why)
{
	buf_fini(&out->text);
	snprintf(out->why, sizeof(out->why), "%s", why);
}

/* False: the name has no path here. */
static bool find_path(const char *name, const char *cwd, char *out, size_t out_bytes)
{
	int length = name[0] == '/'  ? snprintf(out, out_bytes, "%s", name)
		     : cwd[0] == '/' ? snprintf(out, out_bytes, "%s/%s", cwd, name)
				     : -1;

	return length >= 0 && (size_t)length < out_bytes;
}

/* Why a file that is open may not be read; NULL: it may. root reads everything, so for it the file
   must be its own, or one that everyone may read. */
static const char *objection(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_size > SOURCE_TEXT_MOST)
		return "it is larger than 2 MB";
	if (!geteuid() && st->st_uid && !(st->st_mode & S_IROTH))
		return "it is private to another user";
	return NULL;
}

/* The file may grow or shrink meanwhile. */
static const char *source_text_take(struct source_text *out, int fd)
{
	char block[16384];
	ssize_t got;

	while ((got = read(fd, block, sizeof(block))) > 0) {
		if ((int64_t)out->text.used + got > SOURCE_TEXT_MOST)
			return "it is larger than 2 MB";
		if (memchr(block, '\0', (size_t)got))
			return "it is not a text file";
		buf_add(&out->text, block, (size_t)got);
	}
	return got < 0 ? strerror(errno) : out->text.failed ? "out of memory" : NULL;
}

static uint64_t changed_unix_ns(const struct stat *st)
{
	return st->st_mtim.tv_sec < 0 ? 0
				      : (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) +
						(uint64_t)st->st_mtim.tv_nsec;
}

void source_text_read(struct source_text *out, const char *name, const char *cwd,
		      uint64_t started_unix_ns)
{
	char path[KYMO_PATH_BYTES];
	const char *why = NULL;
	struct stat st;
	int fd;

	*out = (struct source_text){ .read = false };
	if (!source_text_is_source(name) || !find_path(name, cwd, path, sizeof(path))) {
		source_text_refuse(out, "it is not the path of a source file");
		return;
	}
	fd = open(path, OPEN_FLAGS);
	if (fd < 0) {
		source_text_refuse(out, errno == ENOENT || errno == ENOTDIR
						? "it is not on this machine"
					: errno == ELOOP ? "it is a symbolic link"
							 : strerror(errno));
		return;
	}
	why = fstat(fd, &st) ? strerror(errno) : objection(&st);
	why = why ? why : source_text_take(out, fd);
	close(fd);
	if (why) {
		source_text_refuse(out, why);
		return;
	}
	out->read = true;
	out->newer = changed_unix_ns(&st) > started_unix_ns;
}

void source_text_fini(struct source_text *text)
{
	buf_fini(&text->text);
}
