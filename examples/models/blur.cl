// kymo-model: name=blur size=65536
// Two operations, one after the other, on the same two buffers.
__kernel void blur_rows(__global const float *in, __global float *out, uint count)
{
	uint i = get_global_id(0), before = i ? i - 1 : i, after = i + 1 < count ? i + 1 : i;

	out[i] = (in[before] + in[i] + in[after]) / 3.0f;
}

__kernel void sharpen(__global float *in, __global const float *out, uint count)
{
	uint i = get_global_id(0);

	if (i < count)
		in[i] = 2.0f * in[i] - out[i];
}
