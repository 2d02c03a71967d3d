// The product of a SwiGLU layer: x / (1 + e^-x) * y.
namespace RADIX_ISA {

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

}  // namespace RADIX_ISA
