/* Targets as JSON: /api/targets. */
#include "serve/target.h"

#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "views/query/json.h"

#define HUNG_NS INT64_C(10000000000)

static const char *target_state_of(const struct store_entry *entry, const struct feed *feed)
{
	static const char *const states[] = { [STORE_LIVE] = "running",
					      [STORE_ENDED] = "ended",
					      [STORE_KILLED] = "killed",
					      [STORE_LOST] = "lost",
					      [STORE_UNKNOWN] = "unknown" };
	const struct now *now = &feed->now;

	if (entry->unreadable[0])
		return "unreadable";
	if (entry->state == STORE_LIVE && feed->filled && now->known &&
	    now->last_row_age_ns > HUNG_NS)
		return "hung";
	return states[entry->state];
}

const char *target_state(const struct target *target)
{
	return target_state_of(&target->entry, &target->feed);
}

void target_how_json(const struct target *target, struct buf *out)
{
	const struct store_entry *entry = &target->entry;
	bool ended = entry->wstatus_known && entry->state != STORE_LIVE;

	if (ended && WIFEXITED(entry->wstatus))
		buf_print(out, "\"exit_code\":%d,\"signal\":null", WEXITSTATUS(entry->wstatus));
	else if (ended && WIFSIGNALED(entry->wstatus))
		buf_print(out, "\"exit_code\":null,\"signal\":%d", WTERMSIG(entry->wstatus));
	else
		buf_text(out, "\"exit_code\":null,\"signal\":null");
}

static void target_key_text(struct buf *out, const char *key, const char *text)
{
	buf_print(out, ",\"%s\":", key);
	if (text && *text)
		json_text(out, text, strlen(text));
	else
		buf_text(out, "null");
}

static void key_number(struct buf *out, const char *key, int64_t number, bool known)
{
	if (known)
		buf_print(out, ",\"%s\":%" PRId64, key, number);
	else
		buf_print(out, ",\"%s\":null", key);
}

static int64_t duration_of(const struct store_entry *entry, const struct feed *feed,
			   uint64_t now_unix_ns)
{
	uint64_t end_ns = entry->state == STORE_LIVE ? now_unix_ns : entry->ended_unix_ns;

	if (feed->filled && entry->state != STORE_LIVE)
		return feed->now_ns;
	return entry->started_unix_ns && end_ns > entry->started_unix_ns
		       ? (int64_t)(end_ns - entry->started_unix_ns)
		       : 0;
}

/* feed: an empty one while its own is being filled, which may take a second. */
static void target_json(const struct target *target, const struct feed *feed, uint64_t now_unix_ns,
			struct buf *out)
{
	static const char *const kinds[] = { "none", "directory", "snapshot", "packed", "job" };
	const struct store_entry *entry = &target->entry;
	const struct target_about *about = &target->about;
	const char *slash = strrchr(entry->path, '/');
	int32_t rank = feed->filled ? feed->rank : about->known ? about->rank : -1;
	int32_t ranks = feed->filled ? feed->ranks : about->known ? about->ranks : -1;

	buf_print(out, "{\"id\":\"%s\"", target->id);
	target_key_text(out, "program",
			entry->program[0] ? entry->program
			: slash		  ? slash + 1
					  : entry->path);
	target_key_text(out, "name", entry->name);
	target_key_text(out, "command", feed->filled ? feed->command : about->command);
	key_number(out, "pid", entry->pid, entry->pid > 0);
	target_key_text(out, "state", target_state_of(entry, feed));
	buf_char(out, ',');
	target_how_json(target, out);
	key_number(out, "started_unix_ns", (int64_t)entry->started_unix_ns, entry->started_unix_ns);
	key_number(out, "duration_ns", duration_of(entry, feed, now_unix_ns), true);
	key_number(out, "rank", rank, rank >= 0);
	key_number(out, "ranks", ranks, ranks > 0);
	key_number(out, "last_row_ns", feed->now_ns - feed->now.last_row_age_ns,
		   feed->filled && feed->now.known && feed->now.last_row_age_ns >= 0);
	target_key_text(out, "kind", kinds[entry->kind]);
	key_number(out, "bytes", (int64_t)entry->bytes, true);
	target_key_text(out, "path", entry->path);
	target_key_text(out, "open_zone", feed->filled && feed->live ? feed->now.longest : NULL);
	key_number(out, "open_zone_age_ns", feed->now.longest_age_ns,
		   feed->filled && feed->live && feed->now.longest[0]);
	key_number(out, "steps", feed->filled ? feed->steps : about->steps,
		   feed->filled || (about->known && entry->state != STORE_LIVE));
	key_number(out, "zones", (int64_t)(feed->model.count - feed->model.sampled), feed->filled);
	target_key_text(out, "unreadable", entry->unreadable);
	buf_char(out, '}');
}

void targets_json(struct targets *targets, struct buf *out)
{
	static const struct feed empty;
	uint64_t now_unix_ns = clock_realtime_ns();
	bool first = true;

	buf_text(out, "\"targets\":[");
	pthread_mutex_lock(&targets->lock);
	for (size_t i = 0; i < targets->count; i++) {
		struct target *target = targets->list[i];

		if (target->gone)
			continue;
		buf_text(out, first ? "\n" : ",\n");
		first = false;
		if (pthread_rwlock_tryrdlock(&target->feed_lock)) {
			target_json(target, &empty, now_unix_ns, out);
			continue;
		}
		target_json(target, &target->feed, now_unix_ns, out);
		pthread_rwlock_unlock(&target->feed_lock);
	}
	pthread_mutex_unlock(&targets->lock);
	buf_char(out, ']');
}
