#include "serve/target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "serve/children/children.h"
#include "store/discover.h"
#include "store/job.h"

#define SAME_RUN_NS UINT64_C(10000000000)
#define LEARN_BYTES (64u << 20)
#define LEARN_AT_ONCE 8
#define LIST_LONG_NS UINT64_C(100000000)
#define LOOK_WAITING_MOST 2
#define LOOK_AGAIN_NS UINT64_C(5000000000) /* after a failure */
#define FORGET_NS UINT64_C(60000000000) /* zones without requests for this long are freed */

uint64_t target_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void targets_init(struct targets *targets)
{
	*targets = (struct targets){ .number = 1 };
	pthread_mutex_init(&targets->lock, NULL);
	pthread_mutex_init(&targets->list_lock, NULL);
}

/* ---- the list ------------------------------------------------------------------------------- */

static void make_id(const char *path, char *out, size_t out_bytes)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15u;
	snprintf(out, out_bytes, "r%016" PRIx64, hash ^ hash >> 29);
}

/* Recordings of other users may be in the user's index or the working directory; they are not
   served. */
static bool target_is_ours(const char *path)
{
	struct stat st;

	return !stat(path, &st) && (st.st_uid == geteuid() || !geteuid());
}

static struct target *target_add(struct targets *targets, const char *id)
{
	struct target *target;

	if (targets->count == TARGETS_MOST ||
	    !grow_short((void **)&targets->list, targets->count, sizeof(*targets->list)))
		return NULL;
	target = calloc(1, sizeof(*target));
	if (!target)
		return NULL;
	target->of = targets;
	strcpy(target->id, id);
	pthread_mutex_init(&target->look_lock, NULL);
	pthread_mutex_init(&target->devices_lock, NULL);
	pthread_mutex_init(&target->first_lock, NULL);
	pthread_mutex_init(&target->run_lock, NULL);
	pthread_rwlock_init(&target->feed_lock, NULL);
	targets->list[targets->count++] = target;
	return target;
}

/* A new run is listed by its live directory until its disk directory refers to it. A client that
   opened it before must still find it. */
static bool is_same_run(const struct target *target, const struct store_entry *entry)
{
	const struct store_entry *known = &target->entry;
	uint64_t apart = known->started_unix_ns > entry->started_unix_ns
				 ? known->started_unix_ns - entry->started_unix_ns
				 : entry->started_unix_ns - known->started_unix_ns;

	return target->gone && entry->pid && known->pid == entry->pid && apart < SAME_RUN_NS &&
	       known->kind == STORE_DIRECTORY && entry->kind == STORE_DIRECTORY;
}

static struct target *target_find_entry(struct targets *targets, const struct store_entry *entry)
{
	for (size_t i = 0; i < targets->count; i++)
		if (!strcmp(targets->list[i]->entry.path, entry->path))
			return targets->list[i];
	for (size_t i = 0; i < targets->count; i++)
		if (is_same_run(targets->list[i], entry))
			return targets->list[i];
	return NULL;
}

static bool is_unchanged(const struct store_entry *a, const struct store_entry *b)
{
	return a->kind == b->kind && a->state == b->state && a->pid == b->pid &&
	       a->wstatus == b->wstatus && a->wstatus_known == b->wstatus_known &&
	       a->started_unix_ns == b->started_unix_ns && a->ended_unix_ns == b->ended_unix_ns &&
	       a->bytes == b->bytes && !strcmp(a->path, b->path) &&
	       !strcmp(a->program, b->program) && !strcmp(a->name, b->name) &&
	       !strcmp(a->unreadable, b->unreadable);
}

/* A run whose program has not started is listed by its live directory, and nothing connects it to
   its disk directory yet: a client could not find it again. It is listed at the next look. */
static bool is_too_young(const struct store_entry *entry)
{
	return entry->kind == STORE_DIRECTORY && entry->state == STORE_LIVE && !entry->pid;
}

static void target_consider(struct targets *targets, const struct store_entry *entry, size_t named)
{
	struct target *target;
	char id[sizeof(target->id)];

	if (!target_is_ours(entry->path) || (!named && is_too_young(entry)))
		return;
	target = target_find_entry(targets, entry);
	if (!target) {
		make_id(entry->path, id, sizeof(id));
		target = target_add(targets, id);
	}
	if (!target)
		return;
	/* Written only if it differs: others may be reading it. */
	if (!is_unchanged(&target->entry, entry))
		target->entry = *entry;
	target->gone = false;
	if (named)
		target->named = named;
}

static int target_live_then_newest(const void *left, const void *right)
{
	const struct target *const *x = left, *const *y = right, *a = *x, *b = *y;

	if ((a->entry.state == STORE_LIVE) != (b->entry.state == STORE_LIVE))
		return a->entry.state == STORE_LIVE ? -1 : 1;
	if (a->entry.started_unix_ns != b->entry.started_unix_ns)
		return a->entry.started_unix_ns > b->entry.started_unix_ns ? -1 : 1;
	return strcmp(a->id, b->id);
}

static uint64_t hash_list(const struct targets *targets)
{
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < targets->count; i++) {
		const struct target *target = targets->list[i];
		uint64_t words[3] = { target->gone, (uint64_t)target->entry.state,
				      (uint64_t)(target->entry.unreadable[0] != 0) };

		for (const char *c = target->id; *c; c++)
			hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
		for (size_t w = 0; w < 3; w++)
			hash = (hash ^ words[w]) * 0x100000001b3u;
	}
	return hash;
}

/* What was found, before it is entered in the list. */
struct listing {
	struct store_entry *entries, *named;
	size_t count;
	bool found[16]; /* which of named[] is there */
};

static const struct store_entry *listing_find(const struct listing *listing, const char *path)
{
	for (size_t i = 0; i < listing->count; i++)
		if (!strcmp(listing->entries[i].path, path))
			return &listing->entries[i];
	return NULL;
}

/* Without targets->lock: it may take a second. A recording is not read twice. */
static void listing_make(const struct targets *targets, struct listing *out)
{
	*out = (struct listing){ .named = calloc(targets->named_count + 1, sizeof(*out->named)) };
	if (!targets->only_named && store_list(&out->entries, &out->count, NULL))
		out->count = 0;
	for (size_t i = 0; i < targets->named_count && out->named; i++) {
		const struct store_entry *known = listing_find(out, targets->named[i]);

		if (known)
			out->named[i] = *known;
		out->found[i] = known || discover_inspect(targets->named[i], true,
							  &out->named[i]) != -ENOENT;
	}
}

static void list_again(struct targets *targets, const struct listing *listing)
{
	uint64_t hash;

	for (size_t i = 0; i < targets->count; i++)
		targets->list[i]->gone = true;
	for (size_t i = 0; i < listing->count; i++)
		target_consider(targets, &listing->entries[i], 0);
	/* From the last to the first: a recording named twice keeps the first place. */
	for (size_t i = targets->named_count; listing->named && i > 0; i--)
		if (listing->found[i - 1])
			target_consider(targets, &listing->named[i - 1], i);
	if (targets->count)
		qsort(targets->list, targets->count, sizeof(struct target *),
		      target_live_then_newest);
	hash = hash_list(targets);
	targets->number += hash != targets->hash;
	targets->hash = hash;
}

/* Frees the data of targets without recent requests. */
static void forget_old(struct targets *targets, uint64_t now_ns)
{
	for (size_t i = 0; i < targets->count; i++) {
		struct target *target = targets->list[i];

		if (!target->feed.filled || kymo__load_seq_cst(&target->watchers) ||
		    now_ns - kymo__load_relaxed(&target->wanted_at_ns) < FORGET_NS ||
		    pthread_mutex_trylock(&target->look_lock))
			continue;
		if (!pthread_rwlock_trywrlock(&target->feed_lock)) {
			uint32_t gen = target->feed.gen;

			feed_fini(&target->feed);
			target->feed.gen = gen + 1;
			target->looked_at_ns = 0;
			pthread_rwlock_unlock(&target->feed_lock);
		}
		pthread_mutex_unlock(&target->look_lock);
	}
}

static void list_now(struct targets *targets)
{
	uint64_t began_ns = target_clock_ns();
	struct listing listing;

	listing_make(targets, &listing);
	pthread_mutex_lock(&targets->lock);
	list_again(targets, &listing);
	forget_old(targets, began_ns);
	targets->listed_at_ns = began_ns;
	pthread_mutex_unlock(&targets->lock);
	free(listing.entries);
	free(listing.named);
	targets->list_cost_ns = target_clock_ns() - began_ns;
}

/* Under list_lock. What takes long is done in at most a tenth of the time, unless it must be. */
static bool list_is_due(struct targets *targets, uint64_t least_ns)
{
	uint64_t most = 10 * targets->list_cost_ns, age_ns;

	pthread_mutex_lock(&targets->lock);
	age_ns = targets->listed_at_ns ? target_clock_ns() - targets->listed_at_ns : UINT64_MAX;
	pthread_mutex_unlock(&targets->lock);
	if (least_ns && targets->list_cost_ns > LIST_LONG_NS && least_ns < most)
		least_ns = most;
	return age_ns >= least_ns;
}

void targets_list(struct targets *targets, uint64_t least_ns)
{
	bool listed;

	pthread_mutex_lock(&targets->lock);
	listed = targets->listed_at_ns;
	pthread_mutex_unlock(&targets->lock);
	if (!listed || !least_ns)
		pthread_mutex_lock(&targets->list_lock);
	else if (pthread_mutex_trylock(&targets->list_lock))
		return;
	if (list_is_due(targets, least_ns))
		list_now(targets);
	pthread_mutex_unlock(&targets->list_lock);
}

/* The path of a target changes at most once, under the lock. */
void target_copy_path(const struct target *target, char out[KYMO_PATH_BYTES])
{
	pthread_mutex_lock(&target->of->lock);
	strcpy(out, target->entry.path);
	pthread_mutex_unlock(&target->of->lock);
}

/* ---- what is not in the list ---------------------------------------------------------------- */

static struct target *find_unknown(struct targets *targets)
{
	struct target *found = NULL;

	pthread_mutex_lock(&targets->lock);
	for (size_t i = 0; i < targets->count && !found; i++) {
		const struct store_entry *entry = &targets->list[i]->entry;

		if (!targets->list[i]->gone && !targets->list[i]->about.known &&
		    !entry->unreadable[0] && !store_kind_is_sql(entry->kind) &&
		    (entry->bytes < LEARN_BYTES || entry->state == STORE_LIVE))
			found = targets->list[i];
	}
	pthread_mutex_unlock(&targets->lock);
	return found;
}

static struct target_about target_learn(const char *path)
{
	struct target_about about = { .known = true, .rank = -1, .ranks = -1 };
	struct recording *recording = NULL;
	struct job_ranks ranks;

	if (store_open(path, &recording, NULL))
		return about;
	about.command = recording->command ? strdup(recording->command) : NULL;
	about.duration_ns = recording->duration_ns;
	job_ranks(recording, &ranks);
	about.steps = ranks.steps;
	about.rank = ranks.rank;
	about.ranks = ranks.ranks;
	store_close(recording);
	return about;
}

void targets_learn(struct targets *targets)
{
	char path[KYMO_PATH_BYTES];
	struct target *target;

	for (int i = 0; i < LEARN_AT_ONCE && (target = find_unknown(targets)); i++) {
		struct target_about about;

		target_copy_path(target, path);
		about = target_learn(path);
		pthread_mutex_lock(&targets->lock);
		/* A target without a process is looked at again. */
		about.known = about.command || target->entry.state != STORE_LIVE;
		free(target->about.command);
		target->about = about;
		targets->number += about.known;
		pthread_mutex_unlock(&targets->lock);
		if (!about.known)
			break;
	}
}

/* ---- finding -------------------------------------------------------------------------------- */

static bool is_better_default(const struct target *target, const struct target *best)
{
	return !best || (target->named && (!best->named || target->named < best->named));
}

/* The first one named on the command line, else the newest live one, else the newest: the list is
   in this order. */
static struct target *find_default(struct targets *targets)
{
	struct target *best = NULL;

	for (size_t i = 0; i < targets->count; i++) {
		struct target *target = targets->list[i];

		if (!target->gone && !target->entry.unreadable[0] &&
		    is_better_default(target, best))
			best = target;
	}
	return best;
}

/* Both directories of a run may have been listed, with two ids: the id of the one that is gone
   refers to the other. */
static struct target *find_successor(struct targets *targets, const char *id)
{
	const struct target *gone = NULL;

	for (size_t i = 0; i < targets->count && !gone; i++)
		if (targets->list[i]->gone && !strcmp(targets->list[i]->id, id))
			gone = targets->list[i];
	for (size_t i = 0; gone && i < targets->count; i++)
		if (!targets->list[i]->gone && is_same_run(gone, &targets->list[i]->entry))
			return targets->list[i];
	return NULL;
}

static struct target *find_named(struct targets *targets, const char *name)
{
	size_t digits = strspn(name, "0123456789");
	long pid = digits && digits < 10 && !name[digits] ? strtol(name, NULL, 10) : 0;

	for (size_t i = 0; i < targets->count; i++) {
		struct target *target = targets->list[i];

		if (!target->gone &&
		    (!strcmp(target->id, name) || (pid && target->entry.pid == pid)))
			return target;
	}
	return find_successor(targets, name);
}

static struct target *find_now(struct targets *targets, const char *name, bool *moved)
{
	bool any = !name || !*name || !strcmp(name, "latest");
	struct target *target;

	targets_list(targets, any ? 200000000u : 2000000000u);
	pthread_mutex_lock(&targets->lock);
	target = any ? find_default(targets) : find_named(targets, name);
	*moved = target && access(target->entry.path, F_OK);
	pthread_mutex_unlock(&targets->lock);
	return target;
}

struct target *targets_find(struct targets *targets, const char *name)
{
	bool moved;
	struct target *target = find_now(targets, name, &moved);

	if (target && !moved)
		return target;
	/* It may be newer than the list, or have moved from memory to disk. */
	targets_list(targets, moved ? 0 : 100000000u);
	return find_now(targets, name, &moved);
}

/* ---- one of them ---------------------------------------------------------------------------- */

static int target_ask_at(struct target *target, struct children_ask *ask, struct kymo_error *err)
{
	target_copy_path(target, ask->question.path);
	ask->keep = target->entry.state != STORE_LIVE;
	return children_ask(ask, err);
}

int target_ask(struct target *target, struct children_ask *ask, struct kymo_error *err)
{
	int rc = target_ask_at(target, ask, err);

	if (rc != -ENOENT || !ask->not_opened)
		return rc;
	targets_list(target->of, 0);
	target = targets_find(target->of, target->id);
	return target ? target_ask_at(target, ask, err) : rc;
}

/* A packed file may be damaged, or made to take long: at most two requests wait for it while
   another reads it. False: too many. */
static bool lock_for_look(struct target *target)
{
	bool few = true;

	if (!pthread_mutex_trylock(&target->look_lock))
		return true;
	if (store_kind_is_sql(target->entry.kind))
		few = kymo__fetch_add_seq_cst(&target->look_waiting, 1) < LOOK_WAITING_MOST;
	if (few)
		pthread_mutex_lock(&target->look_lock);
	if (store_kind_is_sql(target->entry.kind))
		kymo__fetch_sub_seq_cst(&target->look_waiting, 1);
	return few;
}

/* Under look_lock. */
static int look_now(struct target *target, struct kymo_error *err)
{
	uint64_t began_ns = target_clock_ns();
	char path[KYMO_PATH_BYTES];
	int rc;

	target_copy_path(target, path);
	pthread_rwlock_wrlock(&target->feed_lock);
	rc = feed_look(&target->feed, path, err);
	pthread_rwlock_unlock(&target->feed_lock);
	target->looked_at_ns = target_clock_ns();
	target->look_cost_ns = target->looked_at_ns - began_ns;
	if (rc && err && store_kind_is_sql(target->entry.kind)) {
		target->look_failure = *err;
		target->look_failed_at_ns = target->looked_at_ns;
	}
	return rc;
}

int target_look(struct target *target, uint64_t least_ns, bool *looked, struct kymo_error *err)
{
	uint64_t now_ns = target_clock_ns();
	int rc = 0;

	if (looked)
		*looked = false;
	kymo__store_relaxed(&target->wanted_at_ns, now_ns);
	if (!lock_for_look(target))
		return error_set(err, EAGAIN, "the zones are being read; try again later");
	if (!target->feed.filled && target->look_failed_at_ns &&
	    target_clock_ns() - target->look_failed_at_ns < LOOK_AGAIN_NS) {
		*err = target->look_failure;
		rc = -err->code;
	} else if (!target->feed.filled ||
		   (target->feed.live && now_ns - target->looked_at_ns >= least_ns)) {
		/* A recording that had ended at the last look does not change. */
		rc = look_now(target, err);
		if (looked)
			*looked = !rc;
		/* It is gone or being moved to disk: the rows read so far are kept. */
		if (target->feed.filled)
			rc = 0;
	}
	pthread_mutex_unlock(&target->look_lock);
	return rc;
}
