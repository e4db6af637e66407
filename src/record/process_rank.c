/* The rank of a process, from the environment that its launcher set. */
#include <stdlib.h>
#include <string.h>

#include "record/record.h"

/* The variables of each launcher; the first that names a rank counts, so that numbers of two
   launchers are never mixed. */
static const struct {
	const char *rank, *ranks, *local_rank, *attempt;
	const char *only_with; /* must be set, too; NULL: none */
	enum kymo_rank_source source;
} launchers[] = {
	{ "RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT", NULL, KYMO_RANK_TORCH },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", NULL, NULL,
	  KYMO_RANK_LAUNCHER },
	/* In a batch script SLURM_PROCID is 0 for its only process; srun sets the step's id. */
	{ "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_RESTART_COUNT", "SLURM_STEP_ID",
	  KYMO_RANK_LAUNCHER },
	{ "PMIX_RANK", "PMIX_SIZE", "PMIX_LOCAL_RANK", NULL, NULL, KYMO_RANK_LAUNCHER },
	{ "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", NULL, NULL, KYMO_RANK_LAUNCHER },
};

static int number_from(const char *name)
{
	const char *text = name ? secure_getenv(name) : NULL;
	int number = 0;

	if (!text || !*text)
		return -1;
	for (; *text >= '0' && *text <= '9' && number < 100000000; text++)
		number = number * 10 + (*text - '0');
	return *text ? -1 : number;
}

/* A scheduler that starts the job again counts apart from the launcher inside it, and not at first:
   each restart of either kind is an attempt. -1: not known. */
static int attempt_from(const char *launchers_own)
{
	bool slurm = launchers_own && !strcmp(launchers_own, "SLURM_RESTART_COUNT");
	int restarts = slurm ? -1 : number_from(launchers_own);
	int requeues = number_from("SLURM_RESTART_COUNT");

	if (restarts < 0)
		return requeues;
	return requeues < 0 ? restarts : restarts + requeues;
}

void kymo__process_take_rank(struct kymo_control *control)
{
	control->rank = control->ranks = -1;
	control->local_rank_plus_1 = control->attempt_plus_1 = 0;
	control->rank_source = KYMO_RANK_NONE;
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		int rank = number_from(launchers[i].rank);

		if (rank < 0 || (launchers[i].only_with && number_from(launchers[i].only_with) < 0))
			continue;
		control->rank = rank;
		control->ranks = number_from(launchers[i].ranks);
		control->local_rank_plus_1 = (uint32_t)(number_from(launchers[i].local_rank) + 1);
		control->attempt_plus_1 = (uint32_t)(attempt_from(launchers[i].attempt) + 1);
		control->rank_source = launchers[i].source;
		return;
	}
}

void kymo__process_learn_rank(void)
{
	kymo__process.rank_inherited = false;
	kymo__process_take_rank(kymo__process.control);
}
