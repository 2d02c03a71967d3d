// Stands in for the compiler's own header: x86 instructions in plain C++, by SIMDe, and what SIMDe lacks. For tests on machines without them.
#pragma once
#define SIMDE_NO_NATIVE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>

#define _MM_FROUND_NO_EXC SIMDE_MM_FROUND_NO_EXC
#define _mm256_dpbusd_avx_epi32 simde_mm256_dpbusd_epi32
#undef _mm512_madd_epi16
#define _mm512_madd_epi16 emulated_madd

inline float _cvtsh_ss(unsigned short bits) {
  const __m128i vector = _mm_set1_epi16(static_cast<short>(bits));
  return _mm_cvtss_f32(_mm_cvtph_ps(vector));
}

inline __m512i emulated_madd(__m512i a, __m512i b) {
  alignas(64) int16_t x[32], y[32];
  alignas(64) int32_t out[16];
  _mm512_store_si512(x, a), _mm512_store_si512(y, b);
  for (int i = 0; i < 16; ++i) out[i] = x[2 * i] * y[2 * i] + x[2 * i + 1] * y[2 * i + 1];
  return _mm512_load_si512(out);
}

inline __m512 _mm512_cvtepi32_ps(__m512i a) {
  alignas(64) int32_t x[16];
  float out[16];
  _mm512_store_si512(x, a);
  for (int i = 0; i < 16; ++i) out[i] = static_cast<float>(x[i]);
  return _mm512_loadu_ps(out);
}

inline __m512 _mm512_cvtph_ps(__m256i halves) {
  uint16_t x[16];
  float out[16];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(x), halves);
  for (int i = 0; i < 16; ++i) out[i] = _cvtsh_ss(x[i]);
  return _mm512_loadu_ps(out);
}

using __mmask16 = simde__mmask16;

struct Lanes {  // of 32 bits
  alignas(64) float f[16];
  explicit Lanes(__m512 a) { _mm512_storeu_ps(f, a); }
  __m512 all() const { return _mm512_loadu_ps(f); }
};

inline __m512 _mm512_shuffle_f32x4(__m512 a, __m512 b, int four) {
  const Lanes x(a), y(b);
  Lanes out(a);
  for (int i = 0; i < 16; ++i) out.f[i] = (i < 8 ? x : y).f[(four >> (2 * (i / 4)) & 3) * 4 + i % 4];
  return out.all();
}

inline __m512 _mm512_permute_ps(__m512 a, int four) {
  const Lanes x(a);
  Lanes out(a);
  for (int i = 0; i < 16; ++i) out.f[i] = x.f[i / 4 * 4 + (four >> (2 * (i % 4)) & 3)];
  return out.all();
}

inline __m512i _mm512_cvtps_epi32(__m512 a) {
  const Lanes x(a);
  alignas(64) int32_t out[16];
  for (int i = 0; i < 16; ++i) out[i] = static_cast<int32_t>(std::nearbyint(x.f[i]));
  return _mm512_load_si512(out);
}

inline int _mm512_reduce_add_epi32(__m512i a) {
  alignas(64) int32_t x[16];
  _mm512_store_si512(x, a);
  int sum = 0;
  for (int each : x) sum += each;
  return sum;
}

inline __m512 _mm512_maskz_loadu_ps(__mmask16 kept, const float* p) {
  float out[16] = {};
  for (int i = 0; i < 16; ++i)
    if (kept >> i & 1) out[i] = p[i];
  return _mm512_loadu_ps(out);
}

inline void _mm512_mask_storeu_ps(float* p, __mmask16 kept, __m512 a) {
  const Lanes x(a);
  for (int i = 0; i < 16; ++i)
    if (kept >> i & 1) p[i] = x.f[i];
}
