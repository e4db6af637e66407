#include "serve/access/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/files/paths.h"
#include "base/format.h"

#define WAITING 64

/* The directory, private to this user. It is used through its descriptor, so that its path may be
   longer than that of a socket. */
static int local_socket_directory(char *path, size_t path_bytes, struct kymo_error *err)
{
	int rc = paths_root(path, path_bytes, err), fd;
	struct stat st;

	if (rc)
		return rc;
	fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return error_set(err, errno, "cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 077)) {
		close(fd);
		return error_set(err, EPERM, "%s is not private to this user", path);
	}
	return fd;
}

/* 127.0.0.1 is another host in another network namespace. */
static void name_of(const char *address, const char *ending, char *out, size_t out_bytes)
{
	struct stat st = { 0 };

	stat("/proc/self/ns/net", &st);
	snprintf(out, out_bytes, ".serve-%s-%llu%s", address, (unsigned long long)st.st_ino,
		 ending);
}

static int place_of(int directory, const char *address, struct sockaddr_un *out)
{
	char name[96];

	name_of(address, "", name, sizeof(name));
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d/%s", directory,
			name) < (int)sizeof(out->sun_path)
		       ? 0
		       : -ENAMETOOLONG;
}

static int listen_in(int directory, const char *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc = 0;
	struct sockaddr_un place;

	if (fd < 0)
		return -errno;
	rc = place_of(directory, address, &place);
	if (!rc) {
		/* The port is ours, so a server that had this socket has ended. */
		unlink(place.sun_path);
		fchmod(fd, 0600); /* the mode of the file that bind() makes */
		if (bind(fd, (struct sockaddr *)&place, sizeof(place)) || listen(fd, WAITING))
			rc = -errno;
	}
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

int local_socket_listen(const char *address, struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES];
	int directory = local_socket_directory(path, sizeof(path), err), fd;

	if (directory < 0)
		return directory;
	fd = listen_in(directory, address);
	close(directory);
	return fd < 0 ? error_set(err, -fd, "cannot create a socket in %s: %s", path, strerror(-fd))
		      : fd;
}

static bool is_mine(int fd)
{
	struct ucred user = { .uid = (uid_t)-1 };
	socklen_t bytes = sizeof(user);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &bytes) && user.uid == geteuid();
}

int local_socket_connect(const char *address)
{
	char path[KYMO_PATH_BYTES];
	struct kymo_error err;
	struct sockaddr_un place;
	int directory = local_socket_directory(path, sizeof(path), &err), fd = -1;

	if (directory < 0)
		return -1;
	if (!place_of(directory, address, &place))
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && (connect(fd, (struct sockaddr *)&place, sizeof(place)) || !is_mine(fd))) {
		close(fd);
		fd = -1;
	}
	close(directory);
	return fd;
}

static int write_page(int directory, const char *name, const char *link)
{
	int fd, rc = 0;

	unlinkat(directory, name, 0);
	fd = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (dprintf(fd,
		    "<!doctype html><meta charset=\"utf-8\"><title>kymo</title>"
		    "<meta http-equiv=\"refresh\" content=\"0;url=%s\">"
		    "<a href=\"%s\">Open the viewer</a>\n",
		    link, link) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int local_socket_write_page(const char *address, const char *link, char *out, size_t out_bytes,
			    struct kymo_error *err)
{
	char path[KYMO_PATH_BYTES], name[96];
	int directory = local_socket_directory(path, sizeof(path), err), rc;

	if (directory < 0)
		return directory;
	name_of(address, ".html", name, sizeof(name));
	rc = write_page(directory, name, link);
	close(directory);
	if (!rc && snprintf(out, out_bytes, "%s/%s", path, name) >= (int)out_bytes)
		rc = -ENAMETOOLONG;
	return rc ? error_set(err, -rc, "cannot write a page in %s: %s", path, strerror(-rc)) : 0;
}

void local_socket_remove(const char *address)
{
	char path[KYMO_PATH_BYTES], name[96];
	struct kymo_error err;
	int directory = local_socket_directory(path, sizeof(path), &err);

	if (directory < 0)
		return;
	name_of(address, "", name, sizeof(name));
	unlinkat(directory, name, 0);
	name_of(address, ".html", name, sizeof(name));
	unlinkat(directory, name, 0);
	close(directory);
}
