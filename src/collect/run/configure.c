#include "collect/run/configure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/files/paths.h"
#include "collect/move/guard.h"

/* the program may change the other half of the word (its step) at any time */
#define WORD_TRIES 1000
#define LOCK_TRIES 100
#define LOCK_PAUSE_NS 10000000

static bool configure_read_at(int fd, uint64_t offset, void *out, size_t bytes)
{
	return pread(fd, out, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* Sets the bits of `mask` in the word at `offset`. */
static int change_word(int fd, uint64_t offset, uint64_t mask, uint64_t value)
{
	for (int i = 0; i < WORD_TRIES; i++) {
		uint64_t old;
		int rc;

		if (!configure_read_at(fd, offset, &old, sizeof(old)))
			return -EIO;
		rc = guard_swap(fd, offset, old, (old & ~mask) | (value & mask));
		if (rc)
			return rc < 0 ? rc : 0;
	}
	return -EBUSY;
}

/* A u32 is half of a word. */
static int change_half(int fd, uint64_t offset, uint32_t mask, uint32_t value)
{
	unsigned shift = offset % 8 ? 32 : 0;

	return change_word(fd, offset & ~7ull, (uint64_t)mask << shift, (uint64_t)value << shift);
}

static int change_text(int fd, const struct settings_key *key, const char *text)
{
	int rc = 0;

	for (uint32_t at = 0; at < key->detail && !rc; at += 8) {
		uint64_t word;

		memcpy(&word, text + at, sizeof(word));
		rc = change_word(fd, key->offset + at, UINT64_MAX, word);
	}
	return rc;
}

static int configure_change(int fd, const struct settings_key *key,
			    const struct settings_value *value)
{
	switch (key->type) {
	case SETTINGS_TEXT: return change_text(fd, key, value->text);
	case SETTINGS_SECONDS: return change_word(fd, key->offset, UINT64_MAX, value->number);
	case SETTINGS_SWITCH:
		return change_half(fd, key->offset, key->detail, value->number ? UINT32_MAX : 0);
	default: return change_half(fd, key->offset, UINT32_MAX, (uint32_t)value->number);
	}
}

/* Odd before, even after: see base/settings.h. */
static int change_framed(int fd, const struct settings_key *key, const struct settings_value *value)
{
	const uint64_t at = offsetof(struct kymo_control, config_changes);
	uint64_t changes;
	int rc, last;

	if (!configure_read_at(fd, at, &changes, sizeof(changes)))
		return -EIO;
	rc = change_word(fd, at, UINT64_MAX, changes | 1);
	if (rc)
		return rc;
	rc = configure_change(fd, key, value);
	if (!rc)
		rc = change_word(fd, offsetof(struct kymo_control, config_changed),
				 settings_bit(key), UINT64_MAX);
	last = change_word(fd, at, UINT64_MAX, (changes | 1) + 1);
	return rc ? rc : last;
}

/* Serialises concurrent commands. */
static bool configure_lock(int fd)
{
	struct timespec pause = { 0, LOCK_PAUSE_NS };

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static bool is_control(const struct kymo_control *control)
{
	return !memcmp(control->file.magic, KYMO_MAGIC_CONTROL, sizeof(KYMO_MAGIC_CONTROL)) &&
	       control->file.version >= KYMO_FORMAT_OLDEST &&
	       control->file.version <= KYMO_FORMAT_VERSION &&
	       control->file.head_bytes >= sizeof(*control);
}

int configure_process(int fd, const struct settings_key *key, const struct settings_value *value,
		      struct settings_value *out_old, struct kymo_error *err)
{
	struct kymo_control control;
	int rc;

	if (!configure_lock(fd))
		return error_set(err, EBUSY, "another process is changing the settings; try again");
	if (!configure_read_at(fd, 0, &control, sizeof(control)) || !is_control(&control)) {
		rc = error_set(err, EPROTO,
			       "its control page is damaged or written by another version of kymo");
		goto out;
	}
	settings_load(key, &control, out_old);
	/* A value that equals the default is also noted as set: see settings_is_set(). */
	rc = !settings_equal(key, out_old, value) || !(control.config_changed & settings_bit(key));
	if (rc)
		rc = change_framed(fd, key, value);
	if (rc < 0)
		error_set(err, -rc, "cannot write its control page: %s", strerror(-rc));
	else
		rc = !settings_equal(key, out_old, value);
out:
	flock(fd, LOCK_UN);
	return rc;
}

void configure_by(const char *command, char *out, size_t out_bytes)
{
	const struct passwd *user = getpwuid(geteuid());

	if (user)
		snprintf(out, out_bytes, "%s, pid %d, %s", command, (int)getpid(), user->pw_name);
	else
		snprintf(out, out_bytes, "%s, pid %d, uid %d", command, (int)getpid(),
			 (int)geteuid());
}

/* ---- unused space ---------------------------------------------------------------------------- */

/* Files have the size that a program may need, but a change writes only one row and its names.
   Pages after the last used byte become holes, which keeps the size that readers check. A failure
   is ignored. */
static void run_configure_give_back(int directory, const char *name)
{
	static const unsigned char nothing[4096];
	unsigned char page[sizeof(nothing)];
	off_t used = 0, at = 0;
	int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	ssize_t got;

	for (; fd >= 0 && (got = pread(fd, page, sizeof(page), at)) > 0; at += got)
		if (memcmp(page, nothing, (size_t)got) != 0)
			used = at + (off_t)sizeof(page);
	if (fd >= 0 && used < at)
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, used, at - used);
	if (fd >= 0)
		close(fd);
}

void configure_give_back(const char *directory)
{
	char path[KYMO_PATH_BYTES + 64];
	struct dirent *entry;
	DIR *own;

	paths_process(directory, getpid(), paths_starttime(getpid()), path, sizeof(path));
	own = opendir(path);
	while (own && (entry = readdir(own)))
		if (entry->d_name[0] != '.')
			run_configure_give_back(dirfd(own), entry->d_name);
	if (own)
		closedir(own);
}
