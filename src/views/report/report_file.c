#include "views/report/report_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const struct report_format report_formats[] = {
	{ "html", REPORT_HTML_MARK, report_html },
	{ "json", REPORT_JSON_MARK, report_json },
	{ "csv", REPORT_CSV_MARK, report_csv },
	{ NULL, NULL, NULL },
};

const struct report_format *report_format_find(const char *name)
{
	for (const struct report_format *format = report_formats; format->name; format++)
		if (!strcmp(format->name, name))
			return format;
	return NULL;
}

const struct report_format *report_format_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && !strchr(dot, '/') ? report_format_find(dot + 1) : NULL;
}

/* A regular file with the first bytes of our reports. */
static bool report_file_is_ours(const char *path, const char *mark)
{
	char head[128];
	size_t bytes = strlen(mark);
	struct stat status;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return false;
	got = fstat(fd, &status) || !S_ISREG(status.st_mode) ? -1 : read(fd, head, bytes);
	close(fd);
	return got == (ssize_t)bytes && !memcmp(head, mark, bytes);
}

int report_file_open(struct atomic_file *aside, const char *path, const char *mark, bool force,
		     struct kymo_error *err)
{
	return atomic_file_open(aside, path, force || report_file_is_ours(path, mark), err);
}

int report_file_write(struct tables *tables, const struct report_format *format, const char *path,
		      bool force, struct report_options *options, struct kymo_error *err)
{
	struct atomic_file aside;
	int rc = report_file_open(&aside, path, format->mark, force, err);

	if (rc)
		return rc;
	rc = format->write(tables, options, aside.file, err);
	if (!rc)
		return atomic_file_commit(&aside, err);
	atomic_file_discard(&aside);
	return rc;
}
