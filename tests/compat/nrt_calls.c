/* Calls of libnrt, linked with -lnrt; prints what they return. NRT_PLUGIN: without main(). */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

int nrt_load(const void *, size_t, int32_t, int32_t, void **);
int nrt_unload(void *);
int nrt_execute(void *, const void *, void *);
int nrt_execute_repeat(void *, const void *, void *, int);
int nrt_tensor_allocate(int, int, size_t, const char *, void **);
void nrt_tensor_free(void **);
int nrt_tensor_write(void *, const void *, size_t, size_t);
int nrt_tensor_read(const void *, void *, size_t, size_t);

int run(void);
int run(void)
{
	void *model = NULL, *failing = NULL, *tensor = NULL, *on_host = NULL;
	char neff[100] = "", text[8] = "";

	printf("%d", nrt_load(neff, sizeof(neff), 2, 1, &model));
	printf(" %d", nrt_load(neff, 13, 0, 1, &failing));
	printf(" %d", nrt_load(NULL, 0, 0, 1, &model));
	printf(" %d", nrt_tensor_allocate(0, 0, 64, "in", &tensor));
	printf(" %d", nrt_tensor_allocate(1, 0, 32, "out", &on_host));
	printf(" %d", nrt_tensor_write(tensor, "written", 8, 8));
	printf(" %d", nrt_execute(model, NULL, NULL));
	printf(" %d", nrt_execute(failing, NULL, NULL));
	printf(" %d", nrt_execute_repeat(model, NULL, NULL, 3));
	printf(" %d", nrt_tensor_read(tensor, text, 8, 8));
	printf(" %s", text);
	nrt_tensor_free(&tensor);
	nrt_tensor_free(&on_host);
	printf(" %d", nrt_unload(model));
	printf(" %d\n", nrt_unload(failing));
	return 0;
}

#ifndef NRT_PLUGIN
int main(void)
{
	return run();
}
#endif
