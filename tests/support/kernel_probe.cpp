// A whole model on the exported functions, without Python: the same random weights on every machine, a prefill and three steps, and the logits
// of each as text. Tests compile it for another architecture, run it emulated, and compare with this one's.
//
//     kernel_probe WEIGHT_KIND KV_KIND NUM_THREADS INSTRUCTION_SET      kinds are the numbers of abi.h
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "abi.h"

extern "C" {
void* radix_open(const radix::Weights* weights, const char* isa);
void radix_close(void* runner);
int radix_step(void* runner, const radix::Step* step);
int radix_logits(void* runner, const float* hidden, int num_rows, const uint32_t* const* masks, float* out);
}

using namespace radix;

static uint32_t state = 1;

static uint32_t next() { return state = state * 1664525u + 1013904223u; }

static float uniform() { return float(int32_t(next() >> 8) - (1 << 23)) / float(1 << 23); }  // -1 .. 1

static std::deque<std::vector<unsigned char>> memory;

template <class T>
static T* room(size_t count) {
  memory.emplace_back(count * sizeof(T) + 64);
  const uintptr_t start = (uintptr_t(memory.back().data()) + 63) / 64 * 64;
  return (T*)start;
}

static float* floats(size_t count, float center, float spread) {
  float* values = room<float>(count);
  for (size_t i = 0; i < count; ++i) values[i] = center + spread * uniform();
  return values;
}

// float16 numbers from 2^-7 on, all normal
static uint16_t* halves(size_t count, bool negative) {
  uint16_t* values = room<uint16_t>(count);
  for (size_t i = 0; i < count; ++i) values[i] = uint16_t((negative ? 0x8000 : 0) | (6 << 10) | (next() >> 22));
  return values;
}

static Linear linear(int kind, int num_out, int num_in) {
  const size_t rows = size_t(num_out + 15) / 16, groups = rows * size_t(num_in) / 32;
  Linear made{kind, num_out, num_in, 0, nullptr, nullptr, nullptr, floats(size_t(num_out), 0, 0.1f)};
  if (kind == kF32) {
    made.codes = floats(rows * 16 * num_in, 0, 0.2f);
  } else if (kind == kBF16) {
    uint16_t* values = room<uint16_t>(rows * 16 * num_in);
    for (size_t i = 0; i < rows * 16 * num_in; ++i) {
      const float value = 0.2f * uniform();
      std::memcpy(values + i, (const char*)&value + 2, 2);
    }
    made.codes = values;
  } else if (kind == kF16) {
    uint16_t* values = halves(rows * 16 * num_in, false);
    for (size_t i = 0; i < rows * 16 * num_in; ++i) values[i] = uint16_t(values[i] + (4 << 10) + (next() & 0x8000));
    made.codes = values;
  } else {
    const size_t bytes = groups * (kind == kQ8 ? 512 : 256);
    unsigned char* codes = room<unsigned char>(bytes);
    for (size_t i = 0; i < bytes; ++i) codes[i] = (unsigned char)(next() >> 24);
    made.codes = codes;
    made.scales = halves(groups * 16, false);
    made.minimums = kind == kQ4 ? halves(groups * 16, true) : nullptr;
    if (kind == kQ8)  // 8 bits are 16 times as large
      for (size_t i = 0; i < groups * 16; ++i) const_cast<uint16_t*>(made.scales)[i] -= 4 << 10;
  }
  return made;
}

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int kind = std::atoi(argv[1]), kv_kind = std::atoi(argv[2]), threads = std::atoi(argv[3]);
  const int hidden = 64, inner = 96, heads = 4, kv_heads = 2, head_dim = 16, vocab = 83, context = 128, layers = 2, slots = 128;
  std::vector<Layer> stack;
  for (int i = 0; i < layers; ++i)
    stack.push_back({floats(hidden, 1, 0.1f), floats(hidden, 1, 0.1f), linear(kind, (heads + 2 * kv_heads) * head_dim, hidden),
                     linear(kind, hidden, heads * head_dim), linear(kind, 2 * inner, hidden), linear(kind, hidden, inner)});
  Weights weights{};
  Shape& shape = weights.shape;
  shape.num_layers = layers, shape.hidden = hidden, shape.num_heads = heads, shape.num_kv_heads = kv_heads, shape.head_dim = head_dim;
  shape.inner = inner, shape.vocab = vocab, shape.context = context, shape.num_rotary = head_dim, shape.page_size = 16;
  shape.kv_kind = kv_kind, shape.num_threads = threads, shape.epsilon = 1e-5f;
  shape.page_cells = 16 * kv_heads, shape.side_cells = slots * kv_heads, shape.layer_cells = 2 * slots * kv_heads;
  weights.layers = stack.data();
  weights.embedding = weights.head = linear(kind, vocab, hidden);
  weights.final_norm = floats(hidden, 1, 0.1f);
  float *cosines = room<float>(context * head_dim / 2), *sines = room<float>(context * head_dim / 2);
  for (int p = 0; p < context; ++p)
    for (int i = 0; i < head_dim / 2; ++i) {
      const double angle = p * std::pow(10000.0, -double(i) / (head_dim / 2));
      cosines[p * head_dim / 2 + i] = float(std::cos(angle)), sines[p * head_dim / 2 + i] = float(std::sin(angle));
    }
  weights.cosines = cosines, weights.sines = sines;
  weights.kv = room<float>(size_t(layers) * 2 * slots * kv_heads * head_dim);
  weights.kv_scales = kv_kind == kKvI8 ? room<float>(size_t(layers) * 2 * slots * kv_heads) : nullptr;
  void* runner = radix_open(&weights, argv[4]);
  if (!runner) return 3;
  int32_t pages[8] = {5, 2, 7, 0, 1, 3, 4, 6};
  for (int done = 0; done < 103;) {
    const int count = done ? 1 : 100;
    std::vector<int32_t> ids, positions, rows;
    std::vector<int64_t> places;
    for (int i = 0; i < count; ++i) {
      ids.push_back((7 * (done + i) + 3) % vocab), positions.push_back(done + i), rows.push_back(i);
      places.push_back(pages[(done + i) / 16] * 16 + (done + i) % 16);
    }
    const int32_t starts[2] = {0, count}, lengths[1] = {done + count}, none[1] = {0};
    std::vector<float> result(size_t(count) * hidden), logits(size_t(count) * vocab);
    Step step{count, 1, count, 8, 0, 0, ids.data(), positions.data(), places.data(), starts, lengths, pages, rows.data(), none, none, none, result.data()};
    if (radix_step(runner, &step) || radix_logits(runner, result.data(), count, nullptr, logits.data())) return 4;
    for (float value : logits) std::printf("%.9g\n", double(value));
    done += count;
  }
  radix_close(runner);
}
