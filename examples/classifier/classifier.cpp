/*
 * A text classifier on libtorch whose plugin measures itself with vAccel's profiling regions: how
 * long tensors take to make, the model to run, the answer to copy. Lines are printed after every
 * inference, and kymo holds the same for SQL.
 *
 *	examples/classifier/build && cd build/classifier
 *	VACCEL_PROF_ENABLED=enabled ./classifier cnn_trace.pt ../../examples/classifier/vocab.txt 0
 *
 * The last argument is the number of a CUDA device; without one, or without such a device, the CPU
 * serves.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include <torch/cuda.h>
#include <torch/script.h>

#include <tracy/Tracy.hpp>
#include <vaccel_prof.h>

static const size_t max_tokens = 32; /* the length that make_model.py traced */
static const char *const labels[] = { "praise", "complaint", "neither" };
static const char *const texts[] = {
	"the new release is wonderful and fast",
	"it crashed again and nobody answers",
	"the meeting is on tuesday at noon",
	"great work everybody thank you so much",
	"this is slow and the documentation is terrible",
	"the package was sent on monday",
	"I love how simple this is",
	"broken since the last update and very annoying",
	"the train leaves at seven",
	"excellent support and a wonderful team",
};

typedef std::chrono::steady_clock timer;

static long long milliseconds_since(timer::time_point start)
{
	return std::chrono::duration_cast<std::chrono::milliseconds>(timer::now() - start).count();
}

/* ---- the plugin ---- */

struct tensor {
	std::vector<int64_t> data;
};

struct vaccel_prof_region torch_input_stats = VACCEL_PROF_REGION_INIT("torch_input");
struct vaccel_prof_region torch_run_stats = VACCEL_PROF_REGION_INIT("torch_run");
struct vaccel_prof_region torch_out_stats = VACCEL_PROF_REGION_INIT("torch_out");

static torch::Tensor tensor_of(const tensor &from)
{
	/* Not the owner of the numbers, so a copy is made. */
	return torch::from_blob(const_cast<int64_t *>(from.data.data()),
				{ 1, static_cast<int64_t>(from.data.size()) }, torch::kInt64)
		.clone();
}

static std::vector<float> infer(torch::jit::Module &model, const torch::Device &device,
				const tensor &tokens, const tensor &mask)
{
	vaccel_prof_region_start(&torch_input_stats);
	std::vector<torch::jit::IValue> input;
	torch::Tensor input_ids = tensor_of(tokens).to(device);
	torch::Tensor masks = tensor_of(mask).to(device);
	vaccel_prof_region_stop(&torch_input_stats);

	input.push_back(input_ids);
	input.push_back(masks);

	vaccel_prof_region_start(&torch_run_stats);
	torch::Tensor output = model.forward(input).toTensor();
	vaccel_prof_region_stop(&torch_run_stats);

	vaccel_prof_region_start(&torch_out_stats);
	torch::Tensor scores = output.to(torch::kCPU).contiguous();
	const float *data = scores.data_ptr<float>();
	std::vector<float> out(data, data + scores.numel());
	vaccel_prof_region_stop(&torch_out_stats);

	vaccel_prof_region_print(&torch_input_stats);
	vaccel_prof_region_print(&torch_run_stats);
	vaccel_prof_region_print(&torch_out_stats);
	return out;
}

/* ---- the application ---- */

typedef std::unordered_map<std::string, int64_t> vocabulary;

/* A word on each line; its number is the line's, from 0. */
static vocabulary load_vocabulary(const char *path)
{
	ZoneScoped;
	std::ifstream file(path);
	vocabulary words;
	std::string word;

	while (std::getline(file, word))
		words.emplace(word, static_cast<int64_t>(words.size()));
	return words;
}

/* Numbers of the words, and 1 for each that is there; padded with 0. Returns how many words there
   are. */
static size_t preprocess(const vocabulary &words, const char *text, tensor *tokens, tensor *mask)
{
	ZoneScoped;
	std::istringstream stream(text);
	std::string word;

	tokens->data.clear();
	while (tokens->data.size() < max_tokens && stream >> word) {
		vocabulary::const_iterator found = words.find(word);

		tokens->data.push_back(found == words.end() ? 1 : found->second);
	}
	size_t length = tokens->data.size();

	mask->data.assign(length, 1);
	tokens->data.resize(max_tokens, 0);
	mask->data.resize(max_tokens, 0);
	ZoneValue(length);
	return length;
}

static size_t classify(torch::jit::Module &model, const torch::Device &device,
		       const vocabulary &words, const char *text, long long *out_milliseconds)
{
	ZoneScoped;
	timer::time_point start = timer::now();
	tensor tokens, mask;
	size_t length = preprocess(words, text, &tokens, &mask);

	printf("preprocess(): Time Taken: %lld milliseconds\n", milliseconds_since(start));
	fflush(stdout);

	std::vector<float> scores = infer(model, device, tokens, mask);
	size_t best = static_cast<size_t>(
		std::distance(scores.begin(), std::max_element(scores.begin(), scores.end())));

	*out_milliseconds = milliseconds_since(start);
	printf("==========Show Result==========\n");
	printf("Prediction: %s\nLength: %zu\nDuration: %lld\n", labels[best < 3 ? best : 2], length,
	       *out_milliseconds);
	fflush(stdout);
	return length;
}

static torch::Device device_of(const char *number)
{
	if (number && torch::cuda::is_available())
		return torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(atoi(number)));
	return torch::Device(torch::kCPU);
}

static int run(const char *model_path, const char *vocabulary_path, const char *device_number)
{
	vocabulary words = load_vocabulary(vocabulary_path);

	if (words.empty()) {
		fprintf(stderr,
			"classifier: no words in %s; give the vocabulary of make_model.py\n",
			vocabulary_path);
		return 1;
	}
	printf("== [Vocab Loaded] ==\n");

	torch::NoGradGuard no_gradients;
	torch::Device device = device_of(device_number);
	timer::time_point start = timer::now();
	torch::jit::Module model = torch::jit::load(model_path, device);

	model.eval();
	printf("torch::jit::load(): Time Taken: %lld milliseconds\n", milliseconds_since(start));

	long long total = 0;
	size_t count = sizeof(texts) / sizeof(texts[0]), length = 0;

	for (size_t i = 0; i < count; i++) {
		long long duration = 0;

		length = classify(model, device, words, texts[i], &duration);
		total += duration;
		FrameMarkNamed("inference");
	}
	printf("Total Time Taken: %lld milliseconds\n", milliseconds_since(start));
	printf("Total nr of Inference invocations: %zu\nLength: %zu\nAverage: %lld\n", count,
	       length, total / static_cast<long long>(count));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 4) {
		fprintf(stderr, "usage: %s MODEL VOCABULARY [DEVICE]\n", argv[0]);
		return 2;
	}
	try {
		return run(argv[1], argv[2], argc > 3 ? argv[3] : nullptr);
	} catch (const std::exception &error) {
		fprintf(stderr, "classifier: %s: %s\n", argv[1], error.what());
		return 1;
	}
}
