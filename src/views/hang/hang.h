/*
 * Why a job of several ranks makes no progress: which rank is not in the collective that others
 * wait in, what it does instead, and which ranks are in another collective. From the recordings of
 * all ranks, of a running job or of one that has ended.
 */
#ifndef KYMO_VIEWS_HANG_HANG_H
#define KYMO_VIEWS_HANG_HANG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/error.h"
#include "tables/tables.h"
#include "views/term/text.h"

/* Before this time without progress a rank of a running job is only late. */
#define HANG_LEAST_NS 2e9

enum hang_role {
	HANG_ABSENT, /* others wait for it, and it is in no collective */
	HANG_DIFFERS, /* it called another operation or size at the same number */
	HANG_ELSEWHERE, /* others wait for it, and it waits in another collective */
	HANG_UNSEEN, /* others wait for it, and its data is from before they did */
	HANG_WAITS,
	HANG_APART, /* no one waits for it, and it waits for no one */
	HANG_ROLE_COUNT
};

/* A collective, a send or a receive. */
struct hang_call {
	char op[48]; /* "": none */
	char group[96];
	double seq; /* NAN: not known */
	double ns; /* how long ago: since when it waits, or when it ended */
};

/* Numbers are NAN and texts are empty if not known. */
struct hang_rank {
	int32_t rank, pid;
	char host[80], state[16];
	enum hang_role role;
	struct hang_call in; /* that it waits in */
	struct hang_call wanted; /* that waits for it */
	struct hang_call last; /* that it has left */
	double bytes, waiting; /* of its call; ranks that wait for it */
	char expected_op[48];
	double expected_bytes;
	char place[480]; /* function (file:line) */
	char doing[256]; /* "sleeping", "waiting for a socket (…)" */
	double place_ns; /* how long it has been in that function */
	char reason[400]; /* that its collector has kept */
	double step, age_ns, peer, attempt;
};

struct hang {
	struct hang_rank *ranks; /* in the order of their roles, then of their numbers */
	size_t count, room;
	bool live; /* at least one rank runs, or may run on another host */
	size_t hosts;
	char sentence[600];
};

/* Whether the recording has more than one rank. */
bool hang_is_job(struct tables *tables);
int hang_take(struct tables *tables, struct hang *out, struct kymo_error *err);
void hang_fini(struct hang *hang);

void hang_print(const struct hang *hang, const struct text_style *style, FILE *out);
void hang_json(const struct hang *hang, struct buf *out);

/* Shared by the files hang*.c. */
const char *hang_role_word(enum hang_role role);
/* "all_reduce 17", with its group if the job has several. */
void hang_add_call(struct buf *out, const struct hang *hang, const struct hang_call *call);
/* "rank 1 on host b", or "ranks 0, 2-5": `count` of them from `first` on. */
void hang_add_ranks(struct buf *out, const struct hang *hang, size_t first, size_t count);
/* hang_live.c: what ranks that run on this machine do now, from their stacks. */
void hang_add_live(struct hang *hang, const struct recording *recording);

#endif
