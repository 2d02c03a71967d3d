// The plain C border between Python and the native kernels: structs of pointers and integers, mirrored field by field in library.py.
//
// Owns the layout of packed weights and of one step's arguments. All memory belongs to the caller but for the model's own work buffers.
#pragma once
#include <cstdint>

namespace radix {

// How a weight [num_out, num_in] is packed, always in blocks of 16 output rows (num_out is padded to a multiple of 16 with zeros):
//   F32, BF16, F16   [num_out / 16][num_in][16]
//   Q8          int8 [num_out / 16][num_in / 32][8][16][4]: word s of row r holds inputs 2 s, 2 s + 1, 16 + 2 s, 16 + 2 s + 1 of the group
//               w = scale * code (+ minimum); scales, and minimums where they are, float16 [num_out / 16][num_in / 32][16]
//   Q4          as Q8 with codes 0 .. 15, two a byte: word s in the low nibbles of [..][s], word 4 + s in its high ones; always with minimums
//   Q8Halves    as Q8 with codes + 128, unsigned, in words of one half: word 2 j + h holds inputs 16 h + 2 j, 16 h + 2 j + 1, 16 h + 8 + 2 j, 16 h + 9 + 2 j
//   Q4Halves    [..][4][16][4] of the same words: word 2 j in the low nibbles of [..][j], word 2 j + 1 in its high ones
// The instruction set says which of both it reads: words of one half where four products are added by one instruction (VNNI).
enum WeightKind : int32_t { kF32 = 0, kBF16 = 1, kQ4 = 2, kQ8 = 3, kF16 = 4, kQ4Halves = 5, kQ8Halves = 6 };
enum KvKind : int32_t { kKvF32 = 0, kKvBF16 = 1, kKvI8 = 2 };

struct Linear {
  int32_t kind, num_out, num_in, reserved;
  const void* codes;
  const uint16_t* scales;
  const uint16_t* minimums;
  const float* bias;  // [num_out] or null
};

struct Layer {
  const float* attention_norm;
  const float* mlp_norm;
  Linear qkv, attention_out, gate_up, down;
};

struct Shape {
  int32_t num_layers, hidden, num_heads, num_kv_heads, head_dim, inner, vocab, context, num_rotary, page_size, kv_kind, num_threads, pins_threads, reserved;
  int64_t page_cells, layer_cells, side_cells;  // from a page, a layer, keys to the next, values: in cells, each a head of a token
  int64_t ready_bytes;  // of keys and values, taken from the system in the background
  float epsilon;
};

struct Weights {
  Shape shape;
  const Layer* layers;
  Linear embedding, head;
  const float* final_norm;
  const float* cosines;  // [context, num_rotary / 2]
  const float* sines;
  // Page p of layer l holds its keys from cell p * page_cells + l * layer_cells on, [page_size][num_kv_heads], and its values side_cells behind
  // (where `attention_chunks.inl` serves, the cells of a page's keys, values and scales lie in another order).
  void* kv;          // [cells][head_dim]
  float* kv_scales;  // [cells] of int8, else null
};

// One step: sequence s owns rows query_starts[s] .. query_starts[s + 1]. Group g: members group_members[group_starts[g] ..], which share
// their first group_pages[g] pages.
struct Step {
  int32_t num_tokens, num_sequences, num_rows, page_stride, num_groups, reserved;
  const int32_t* token_ids;
  const int32_t* positions;
  const int64_t* slot_ids;
  const int32_t* query_starts;
  const int32_t* context_lens;
  const int32_t* page_tables;
  const int32_t* logit_rows;
  const int32_t* group_starts;
  const int32_t* group_members;
  const int32_t* group_pages;
  float* hidden;  // out: [num_rows, hidden]
};

// A batch of rows to sample and of rows to score; plan.SamplingBatch and ScoreRows say what each argument means. Sparse entries are sorted
// by row: those of row k are starts[k] .. starts[k + 1]. Results are filled where they have a meaning.
struct Sampling {
  int32_t num_rows, num_scores, vocab, top_width, score_width, num_logits;
  const float* logits;  // [num_logits, vocab]
  const int32_t *rows, *top_k, *positions, *choices, *num_logprobs;
  const float *temperature, *top_p, *min_p, *typical_p, *repetition, *frequency, *presence;
  const uint64_t* seeds;
  const int32_t *count_starts, *count_ids, *count_output;  // null: none
  const int32_t *bias_starts, *bias_ids;                   // null: none
  const float* bias_values;
  const int32_t* mask_of;  // [num_rows] row of `masks`, or -1; null: none
  const uint32_t* masks;   // [*, (vocab + 31) / 32]
  const int32_t *score_rows, *score_ids, *score_num;
  int32_t *token_ids, *reasons;  // reasons: 0, 1 not numbers, 2 infinite, 3 nothing allowed
  float* chosen;
  int32_t* top_ids;
  float* top_values;
  float* score_chosen;
  int32_t* score_top_ids;
  float* score_top_values;
};

}  // namespace radix
