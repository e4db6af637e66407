#include "views/status/doors.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/install_path.h"

/* ---- libraries that a variable names ---- */

const struct door doors_loaded[] = {
	{ "itt", "marks of the ITT API", "INTEL_LIBITTNOTIFY64", "libkymo_itt.so", NULL, true },
	{ "nvtx", "marks of NVTX", "NVTX_INJECTION64_PATH", "libkymo_nvtx.so", NULL, true },
	{ "cupti", "work of CUDA programs", "CUDA_INJECTION64_PATH", "libkymo_cupti.so",
	  "libcuda.so.1", false },
};
const size_t doors_loaded_count = sizeof(doors_loaded) / sizeof(doors_loaded[0]);

static bool is_own_library(const char *set, const char *library)
{
	char own[PATH_MAX];

	return install_path_library(library, own, sizeof(own)) && !strcmp(set, own);
}

static void look_at_loaded(const struct door *door, struct doctor_finding *finding)
{
	const char *set = getenv(door->variable);
	char library[PATH_MAX];

	if (set && *set && !is_own_library(set, door->library)) {
		doctor_found(finding, DOCTOR_ABSENT, "%s is set to another tool: %s",
			     door->variable, set);
		doctor_mend(finding, "unset %s", door->variable);
	} else if (!install_path_library(door->library, library, sizeof(library))) {
		doctor_found(finding, DOCTOR_ABSENT, "%s is not installed with kymo",
			     door->library);
	} else if (door->needs && !doctor_has_library(door->needs)) {
		doctor_found(finding, DOCTOR_ABSENT, "no %s: no driver", door->needs);
	} else {
		doctor_found(finding, DOCTOR_WORKS, "set by kymo run");
	}
}

/* ---- libraries, headers and commands with the names of other tools ---- */

/* In the source tree beside the build folder, below an installation prefix, in an environment with
   the wheel. */
#define WHEEL_FILES "../lib/*/*-packages/kymo/"
#define WHEEL_HEADERS WHEEL_FILES "include/kymo-compat/"
static const char *const compat_library[] = { "libkymo_compat.so", "../lib/libkymo_compat.so",
					      "../lib/*/libkymo_compat.so",
					      (WHEEL_FILES "libkymo_compat.so.0"), NULL };
static const char *const vaccel_header[] = { "../compat/include/vaccel_prof.h",
					     "../include/kymo-compat/vaccel_prof.h",
					     (WHEEL_HEADERS "vaccel_prof.h"), NULL };
static const char *const tracy_header[] = { "../compat/include/tracy/Tracy.hpp",
					    "../include/kymo-compat/tracy/Tracy.hpp",
					    (WHEEL_HEADERS "tracy/Tracy.hpp"), NULL };
static const char *const probing_command[] = { "probing", NULL };

/* Both places, or the first alone. */
static void look_at_files(struct doctor_finding *finding, const char *const *first,
			  const char *const *second, const char *how)
{
	char path[PATH_MAX];
	const char *missing = !install_path_find(first, path, sizeof(path))		 ? first[0]
			      : second && !install_path_find(second, path, sizeof(path)) ? second[0]
											 : NULL;

	if (!missing)
		doctor_found(finding, DOCTOR_WORKS, "%s", how);
	else
		doctor_found(finding, DOCTOR_ABSENT, "%s is not installed with kymo",
			     strrchr(missing, '/') ? strrchr(missing, '/') + 1 : missing);
}

static void look_at_vaccel(struct doctor_finding *finding)
{
	look_at_files(finding, vaccel_header, compat_library,
		      "vaccel_prof.h, with -lkymo_compat -lkymo");
}

static void look_at_tracy(struct doctor_finding *finding)
{
	look_at_files(finding, tracy_header, NULL, "tracy/Tracy.hpp and TracyC.h, with -lkymo");
}

#define NRT_RUNTIME "libnrt.so.1"

static bool has_nrt_in(const char *folder, size_t bytes)
{
	char path[PATH_MAX];

	return bytes &&
	       snprintf(path, sizeof(path), "%.*s/" NRT_RUNTIME, (int)bytes, folder) <
		       (int)sizeof(path) &&
	       !access(path, R_OK);
}

bool doors_has_nrt(void)
{
	static const char *const known[] = { "/opt/aws/neuron/lib",
					     "/usr/local/lib",
					     "/usr/lib",
					     "/usr/lib/x86_64-linux-gnu",
					     "/usr/lib/aarch64-linux-gnu",
					     "/usr/lib64" };
	const char *list = getenv("LD_LIBRARY_PATH");

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (has_nrt_in(known[i], strlen(known[i])))
			return true;
	while (list && *list) {
		size_t bytes = strcspn(list, ":;");

		if (has_nrt_in(list, bytes))
			return true;
		list += bytes + (list[bytes] != '\0');
	}
	return false;
}

static void look_at_nrt(struct doctor_finding *finding)
{
	char library[PATH_MAX];

	if (!install_path_library("libkymo_nrt.so", library, sizeof(library)))
		doctor_found(finding, DOCTOR_ABSENT, "libkymo_nrt.so is not installed with kymo");
	else if (!doors_has_nrt())
		doctor_found(finding, DOCTOR_ABSENT,
			     NRT_RUNTIME " not found; nrt_profile.h works without");
	else
		doctor_found(finding, DOCTOR_WORKS,
			     NRT_RUNTIME "; calls are recorded by kymo run --device");
}

static void look_at_probing(struct doctor_finding *finding)
{
	look_at_files(finding, probing_command, NULL, "the command probing");
}

static void look_at_jax(struct doctor_finding *finding)
{
	char version[64];

	if (doctor_ask("python3 -c 'import importlib.metadata as m; print(m.version(\"jax\"))' "
		       "2>/dev/null",
		       version, sizeof(version)))
		doctor_found(finding, DOCTOR_WORKS, "JAX %s in python3", version);
	else
		doctor_found(finding, DOCTOR_ABSENT,
			     "no jax in python3; a recorded program may use another Python");
}

static const struct {
	const char *name, *what;
	void (*look)(struct doctor_finding *);
} others[] = {
	{ "jax", "annotations and steps of JAX", look_at_jax },
	{ "vaccel", "programs with vaccel_prof.h", look_at_vaccel },
	{ "tracy", "programs with Tracy's macros", look_at_tracy },
	{ "nrt", "programs with Neuron's runtime", look_at_nrt },
	{ "probing", "commands of Probing", look_at_probing },
};
#define OTHERS (sizeof(others) / sizeof(others[0]))

size_t doors_look(struct doctor_finding *out)
{
	for (size_t i = 0; i < doors_loaded_count; i++) {
		out[i] = (struct doctor_finding){ .name = doors_loaded[i].name,
						  .what = doors_loaded[i].what };
		look_at_loaded(&doors_loaded[i], &out[i]);
	}
	out += doors_loaded_count;
	for (size_t i = 0; i < OTHERS; i++) {
		out[i] = (struct doctor_finding){ .name = others[i].name, .what = others[i].what };
		others[i].look(&out[i]);
	}
	return doors_loaded_count + OTHERS;
}
