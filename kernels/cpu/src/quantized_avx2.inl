// Quantized linears with AVX2; `linear.inl` says what is computed.
//
// A tile is 16 outputs by up to four rows. Four bytes of a row, in all lanes, meet four bytes of eight weights in one multiplication
// (vpmaddubsw), whose 16-bit lanes hold two inputs of the lower half, then two of the upper. Eight such sums of 4-bit codes fit 16 bits
// (8 * 2 * 15 * 127 = 30,480), so a group needs one more multiplication, by the group's two factors, to become 32-bit. Codes of 8 bits need it
// after every step. Many rows share one
// unpacking of 4-bit codes to bytes.
namespace RADIX_ISA {

// One group of 16 outputs: 4-bit codes as bytes, scales and minimums as floats.
struct alignas(64) WideGroup {
  uint8_t codes[512];
  float scales[kBlock], minimums[kBlock];
};
constexpr int kWideGroups = 24;  // whole spans; 15 KB of the first-level cache
constexpr int kFewRows = 2;      // rows for which unpacking in registers is cheaper

// Where a tile finds its weights: group g, eight words s of `part` (outputs 0-7 or 8-15).
struct WideCodes {
  static constexpr bool kIsSigned = false;
  const WideGroup* groups;
  __m256i codes(int g, int s, int part) const { return _mm256_load_si256((const __m256i*)(groups[g].codes + 64 * s + 32 * part)); }
  __m256 scales(int g, int part) const { return _mm256_load_ps(groups[g].scales + 8 * part); }
  __m256 minimums(int g, int part) const { return _mm256_load_ps(groups[g].minimums + 8 * part); }
  bool has_minimums() const { return true; }
};

struct StoredCodes {
  const uint8_t* bytes;
  const uint16_t* all_scales;
  const uint16_t* all_minimums;
  StoredCodes(const Linear& w, size_t group)
      : bytes((const uint8_t*)w.codes + group * bytes_of_group(w)), all_scales(w.scales + group * kBlock),
        all_minimums(w.minimums ? w.minimums + group * kBlock : nullptr) {}
  __m256 scales(int g, int part) const { return eight_halves(all_scales + g * kBlock + 8 * part); }
  __m256 minimums(int g, int part) const { return eight_halves(all_minimums + g * kBlock + 8 * part); }
  bool has_minimums() const { return all_minimums != nullptr; }
};

struct Codes4 : StoredCodes {
  static constexpr bool kIsSigned = false;
  using StoredCodes::StoredCodes;
  __m256i codes(int g, int s, int part) const {
    const __m256i both = _mm256_load_si256((const __m256i*)(bytes + 256 * size_t(g) + 64 * (s % 4) + 32 * part));
    return _mm256_and_si256(s < 4 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(15));
  }
};

struct Codes8 : StoredCodes {
  static constexpr bool kIsSigned = true;
  using StoredCodes::StoredCodes;
  __m256i codes(int g, int s, int part) const { return _mm256_load_si256((const __m256i*)(bytes + 512 * size_t(g) + 64 * s + 32 * part)); }
};

// The compiler may neither delay this sum nor reorder it with others: it would run out of registers.
inline void keep(__m256i& sum) { asm volatile("" : "+x"(sum)); }

// sum + what word s of a row gives to eight outputs: 16-bit sums of unsigned 4-bit codes, or 32-bit sums of signed 8-bit codes.
template <bool kIsSigned>
inline void add_step(__m256i& sum, bool is_first, __m256i weights, __m256i x, __m256i factors) {
  if (kIsSigned) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights));
    const __m256i product = _mm256_madd_epi16(pairs, factors);
    sum = is_first ? product : _mm256_add_epi32(sum, product);
  } else {
    const __m256i product = _mm256_maddubs_epi16(weights, x);
    sum = is_first ? product : _mm256_add_epi16(sum, product);
  }
  keep(sum);
}

// Adds groups first .. last of `w`, a span, to the totals of M rows.
template <int M, class Codes>
__attribute__((noinline)) void tile(const Codes& w, int first, int last, const RowsFrom& rows, float (*to)[kBlock]) {
  __m256 value[M][2];
  for (int i = 0; i < M; ++i) value[i][0] = value[i][1] = _mm256_setzero_ps();
  for (int g = first; g < last; ++g) {
    __m256i sum[M][2], factors[M];
    for (int i = 0; i < M; ++i) factors[i] = _mm256_set1_epi32(rows.factors[i * rows.stride + g]);
#pragma GCC unroll 8
    for (int s = 0; s < 8; ++s) {
      const __m256i weights[2] = {w.codes(g, s, 0), w.codes(g, s, 1)};
#pragma GCC unroll 4
      for (int i = 0; i < M; ++i) {
        const __m256i x = _mm256_set1_epi32(rows.word(i, g, s));
        for (int part = 0; part < 2; ++part) add_step<Codes::kIsSigned>(sum[i][part], s == 0, weights[part], x, factors[i]);
      }
    }
    for (int part = 0; part < 2; ++part) {
      const __m256 scales = w.scales(g, part);
      for (int i = 0; i < M; ++i) {
        const __m256i product = Codes::kIsSigned ? sum[i][part] : _mm256_madd_epi16(sum[i][part], factors[i]);
        value[i][part] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(product), scales, value[i][part]);
      }
    }
    if (!w.has_minimums()) continue;
    for (int part = 0; part < 2; ++part) {
      const __m256 minimums = w.minimums(g, part);
      for (int i = 0; i < M; ++i) value[i][part] = _mm256_fmadd_ps(minimums, _mm256_set1_ps(rows.sums[i * rows.stride + g]), value[i][part]);
    }
  }
  for (int i = 0; i < M; ++i) {
    const __m256 unit = _mm256_set1_ps(rows.units[i * rows.span_stride + first / kGroupsOfSpan]);
    for (int part = 0; part < 2; ++part)
      _mm256_store_ps(to[i] + 8 * part, _mm256_fmadd_ps(value[i][part], unit, _mm256_load_ps(to[i] + 8 * part)));
  }
}

// Adds groups 0 .. count of `w`, whole spans, to the totals of M rows.
template <int M, class Codes>
inline void tiles_of(const Codes& w, int count, const RowsFrom& rows, float (*totals)[kBlock]) {
  for (int g = 0; g < count; g += kGroupsOfSpan) tile<M>(w, g, std::min(g + kGroupsOfSpan, count), rows, totals);
}

// Adds groups group .. group + count of the weights, whole spans, to the totals of rows first .. last.
template <class Codes>
inline void tiles(const Codes& w, int count, const Linear& linear, const Activations& a, int group, int first, int last, float (*totals)[kBlock]) {
  int row = first;
  for (; row + 4 <= last; row += 4) tiles_of<4>(w, count, RowsFrom(a, linear.num_in, row, group), totals + (row - first));
  const RowsFrom rest(a, linear.num_in, row, group);
  switch (last - row) {
    case 3: return tiles_of<3>(w, count, rest, totals + (row - first));
    case 2: return tiles_of<2>(w, count, rest, totals + (row - first));
    case 1: return tiles_of<1>(w, count, rest, totals + (row - first));
  }
}

inline void widen(const Linear& w, size_t group, int count, WideGroup* to) {
  const Codes4 from(w, group);
  for (int g = 0; g < count; ++g)
    for (int part = 0; part < 2; ++part) {
      for (int s = 0; s < 8; ++s) _mm256_store_si256((__m256i*)(to[g].codes + 64 * s + 32 * part), from.codes(g, s, part));
      _mm256_store_ps(to[g].scales + 8 * part, from.scales(g, part));
      _mm256_store_ps(to[g].minimums + 8 * part, from.minimums(g, part));
    }
}

inline void quantized_block(const Linear& w, int block, const Activations& a, int first, int last, float* out, int stride) {
  const int groups = w.num_in / kGroup;
  const size_t start = size_t(block) * groups;
  alignas(32) float totals[kRowsInCache][kBlock];
  std::memset(totals, 0, size_t(last - first) * sizeof(totals[0]));
  if (w.kind == k8Bits) {
    tiles(Codes8(w, start), groups, w, a, 0, first, last, totals);
  } else if (last - first <= kFewRows) {
    tiles(Codes4(w, start), groups, w, a, 0, first, last, totals);
  } else {
    WideGroup wide[kWideGroups];
    for (int g = 0; g < groups; g += kWideGroups) {
      const int count = std::min(kWideGroups, groups - g);
      widen(w, start + g, count, wide);
      tiles(WideCodes{wide}, count, w, a, g, first, last, totals);
    }
  }
  for (int row = first; row < last; ++row) finish(w, block, totals[row - first], out + size_t(row - first) * stride);
}

}  // namespace RADIX_ISA
