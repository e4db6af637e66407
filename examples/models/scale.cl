// kymo-model: name=scale size=65536
// One operation: y = 2 x + 1.
__kernel void scale_and_shift(__global const float *x, __global float *y)
{
	size_t i = get_global_id(0);

	y[i] = 2.0f * x[i] + 1.0f;
}
