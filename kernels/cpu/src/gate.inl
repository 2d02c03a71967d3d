// The product of a SwiGLU layer, x / (1 + e^-x) * y, alone and behind the linear that computes x and y.
namespace RADIX_ISA {

constexpr int kRowsOfGate = kHasVnni ? 16 : 64;  // together, so that both outputs stay in cache; without VNNI, weights are unpacked once for them

#if defined(__AVX512F__)
constexpr int kGateLanes = 16;

// e^x to about 2 ulp for x in -87 .. 88, as at these bounds beyond; see `exp8`.
inline __m512 exp16(__m512 x) {
  x = _mm512_min_ps(_mm512_set1_ps(88.0f), _mm512_max_ps(_mm512_set1_ps(-87.0f), x));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0.693145752f), x);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(-1.42860677e-6f), r);
  __m512 p = _mm512_set1_ps(1.0f / 720);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

inline void gate_lanes(const float* x, const float* y, float* out) {
  const __m512 value = _mm512_loadu_ps(x), below = _mm512_add_ps(_mm512_set1_ps(1.0f), exp16(_mm512_sub_ps(_mm512_setzero_ps(), value)));
  _mm512_storeu_ps(out, _mm512_mul_ps(_mm512_div_ps(value, below), _mm512_loadu_ps(y)));
}
#else
constexpr int kGateLanes = 8;

inline void gate_lanes(const float* x, const float* y, float* out) {
  const F8 value = load8(x);
  store8(out, mul(div(value, add(all8(1.0f), exp8(sub(zero8(), value)))), load8(y)));
}
#endif

inline void gate_row(const float* x, const float* y, int count, float* out) {
  int d = 0;
  for (; d + kGateLanes <= count; d += kGateLanes) gate_lanes(x + d, y + d, out + d);
  for (; d < count; ++d) out[d] = x[d] / (1.0f + std::exp(-x[d])) * y[d];
}

// Whether the product can be made and quantized a span at a time, as the linear before it computes them.
inline bool gates_spans(const Linear& gate_up, const Linear& down) {
  return is_quantized(gate_up) && is_quantized(down) && down.num_in % kSpan == 0;
}

// This member's share of the inputs of `down`, of a product that is never all in memory; the gates' outputs of `gate_up` come before the others'.
inline void gated_linear(const Linear& gate_up, const Activations& a, int num_rows, const Linear& down, Activations& to, Portions& portions, unsigned turn, int member, int num_members) {
  constexpr int kBlocks = kSpan / kBlock;
  const int spans = to.num_spans(down.num_in);
  float values[kRowsOfGate][2][kSpan], product[kSpan];
  share_out(spans, num_rows, kRowsOfGate, portions, turn, member, num_members, [&](int span, int first, int last) {
    for (int side = 0; side < 2; ++side)
      for (int i = 0; i < kBlocks; ++i)
        block_of_rows(gate_up, (side * spans + span) * kBlocks + i, a, first, last, values[0][side] + i * kBlock, 2 * kSpan);
    for (int row = first; row < last; ++row) {
      gate_row(values[row - first][0], values[row - first][1], kSpan, product);
      take_span(to, row, span, product, down);
    }
  });
}

}  // namespace RADIX_ISA
