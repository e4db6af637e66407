#include "collect/run/autopsy.h"

#include <string.h>
#include <unistd.h>

#include <kymo/kymo.h>

#include "collect/run/autopsy_reason.h"

#define IDLE_NS 2000000000ull
#define AGAIN_NS 3000000000ull
#define IDLE_SHARE 0.02 /* of a core */

/* ---- whether it is idle ---------------------------------------------------------------------- */

static uint64_t family_ticks(const struct family *family)
{
	uint64_t ticks = 0;

	for (size_t i = 0; i < family->count; i++)
		ticks += family->members[i].cpu_ticks;
	return ticks;
}

static bool has_rested(const struct autopsy *autopsy, uint64_t ticks, uint64_t now_ns)
{
	double past_s = (double)(now_ns - autopsy->looked_ns) / 1e9;
	double used_s = (double)(ticks > autopsy->cpu_ticks ? ticks - autopsy->cpu_ticks : 0) /
			(double)sysconf(_SC_CLK_TCK);

	return used_s <= IDLE_SHARE * past_s + 0.011;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static void autopsy_take(struct autopsy *autopsy, const struct family *family, uint64_t now_ns)
{
	struct autopsy_reason reason;

	autopsy_reason_find(family, &reason);
	if (reason.sentence[0] &&
	    (!autopsy->taken_ns || strcmp(reason.sentence, autopsy->reason) != 0)) {
		kymo_mark(AUTOPSY_MARK, reason.sentence);
		kymo_mark(AUTOPSY_PLACE, reason.place);
		kymo_mark(AUTOPSY_THREADS, buf_get(&reason.threads));
		strcpy(autopsy->reason, reason.sentence);
	}
	autopsy->taken_ns = now_ns;
	autopsy_reason_fini(&reason);
}

void autopsy_look(struct autopsy *autopsy, const struct family *family, uint64_t now_ns)
{
	uint64_t ticks = family_ticks(family);
	bool rested = autopsy->looked_ns && has_rested(autopsy, ticks, now_ns);

	/* A process has ended, as all do in a job that is killed: the next look tells more. */
	if (ticks < autopsy->cpu_ticks) {
		autopsy->cpu_ticks = ticks;
		autopsy->looked_ns = now_ns;
		return;
	}
	if (!rested) {
		if (autopsy->taken_ns)
			kymo_mark(AUTOPSY_END, "");
		autopsy->idle_since_ns = autopsy->taken_ns = 0;
	} else if (!autopsy->idle_since_ns) {
		autopsy->idle_since_ns = autopsy->looked_ns;
	}
	autopsy->cpu_ticks = ticks;
	autopsy->looked_ns = now_ns;
	if (autopsy->idle_since_ns && now_ns - autopsy->idle_since_ns >= IDLE_NS &&
	    (!autopsy->taken_ns || now_ns - autopsy->taken_ns >= AGAIN_NS))
		autopsy_take(autopsy, family, now_ns);
}
