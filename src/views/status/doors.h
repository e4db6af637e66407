/* Doors: ways by which marks and work of a program that does not know kymo reach its recording. */
#ifndef KYMO_VIEWS_STATUS_DOORS_H
#define KYMO_VIEWS_STATUS_DOORS_H

#include "views/status/doctor.h"

/* A library of kymo that marked programs load by the name in a variable. */
struct door {
	const char *name, *what; /* as in struct doctor_finding */
	const char *variable, *library;
	const char *needs; /* a library without which nothing can be recorded; NULL: none */
	bool by_run; /* kymo run sets the variable */
};
extern const struct door doors_loaded[];
extern const size_t doors_loaded_count;

/* Whether the Neuron runtime is where the loader looks for it: LD_LIBRARY_PATH, its own folder, the
   system's. It is not loaded. */
bool doors_has_nrt(void);

/* Fills one finding for each door; returns their number. */
size_t doors_look(struct doctor_finding *out);

#endif
