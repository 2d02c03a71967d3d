// Keys and values of an int8 pool: a head of a token is codes times a scale. `reference/elementwise.py` defines the same.
//
// Some dimensions of a head are far larger than the others, which their scale would cost all precision. So queries, keys and values are multiplied
// by a Hadamard matrix, which spreads them, and mixed values once more, which undoes it: products of queries and keys stay what they were (QuaRot:
// Ashkboos et al. 2024). The scale of a key is its largest value / 127; that of a value a power of two, so that attention over codes may move it
// into a weight's exponent.
namespace RADIX_ISA {

constexpr int kMaxHeadDim = 256;

// Of a value: all of a head that small is 0. Scales of values in a block may differ by 2^140: beyond that the share of those that have none is lost.
constexpr float kSmallestScale = 0x1p-60f;

// Blocks of 8 N dimensions times the Hadamard matrix of that size, scaled to keep lengths.
template <int N = kMaxHeadDim / 8>
inline void spread_blocks(float* x, int head_dim, int size) {
  if (size < 8 * N) {
    if constexpr (N > 1) spread_blocks<N / 2>(x, head_dim, size);
    return;
  }
  const F8 factor = all8(1.0f / std::sqrt(8.0f * N));
  for (float* end = x + head_dim; x < end; x += 8 * N) {
    F8 v[N];
#pragma GCC unroll 32
    for (int i = 0; i < N; ++i) v[i] = hadamard8(mul(load8(x + 8 * i), factor));
#pragma GCC unroll 8
    for (int stride = 1; stride < N; stride *= 2)
#pragma GCC unroll 32
      for (int i = 0; i < N; ++i)
        if (!(i & stride)) {
          const F8 a = v[i], b = v[i + stride];
          v[i] = add(a, b), v[i + stride] = sub(a, b);
        }
#pragma GCC unroll 32
    for (int i = 0; i < N; ++i) store8(x + 8 * i, v[i]);
  }
}

// A head times the Hadamard matrix of the largest power of two that divides its size, block by block.
inline void spread(float* x, int head_dim) { spread_blocks(x, head_dim, head_dim & -head_dim); }

// The largest magnitude of a head; no number if one of them is none, or infinite.
inline float largest_of_head(const float* x, int head_dim) {
  F8 most = zero8(), nothing = zero8();
  for (int d = 0; d < head_dim; d += 8) {
    most = max8(most, abs8(load8(x + d)));
    nothing = fma8(load8(x + d), zero8(), nothing);
  }
  return max_of(most) + sum_of(nothing);
}

inline float scale_of_key(float largest) { return largest / 127.0f; }

// largest / 127 rounded up to a power of two.
inline float scale_of_value(float largest) {
  float scale = largest / 127.0f;
  if (!(scale < INFINITY)) return scale;
  uint32_t bits;
  std::memcpy(&bits, &scale, 4);
  bits = (bits + 0x7fffff) & 0x7f800000;
  std::memcpy(&scale, &bits, 4);
  return std::max(scale, kSmallestScale);
}

// Codes of -127 .. 127: 127 where x is no number, 0 where the scale has no inverse.
inline void quantize_head(const float* x, int head_dim, float scale, int8_t* codes) {
  const F8 inverse = all8(scale >= 0x1p-126f ? 1.0f / scale : 0.0f), least = all8(-127.0f), most = all8(127.0f);
  for (int d = 0; d < head_dim; d += 8) store8(codes + d, max8(min8(mul(load8(x + d), inverse), most), least));
}

}  // namespace RADIX_ISA
