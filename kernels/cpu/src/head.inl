// The LM head where masks say which tokens can be chosen: a row whose mask touches few blocks of 16 outputs computes only those, and the rest
// of its row is minus infinity. What is computed has the bits of the whole head.
namespace RADIX_ISA {

// A row is sparse when it needs at most one in so many blocks: it reads weights alone that whole rows share, so it gains the less the more
// rows there are. Measured: a row of eight costs a seventh of one alone.
inline int sparse_share(int num_rows) { return num_rows < 3 ? 2 : num_rows < 8 ? 4 : 8; }

constexpr int kBlocksOfTurn = 8;  // members take so many blocks in turns, because allowed tokens lie close together

inline bool is_allowed(const uint32_t* mask, int block) { return ((mask[block / 2] >> (16 * (block % 2))) & 0xffff) != 0; }

inline bool is_sparse(const uint32_t* mask, int num_blocks, int num_rows) {
  if (!mask) return false;
  const int most = num_blocks / sparse_share(num_rows);
  for (int block = 0, needed = 0; block < num_blocks; ++block)
    if ((needed += is_allowed(mask, block)) > most) return false;
  return true;
}

// Which rows of a head's input are computed whole (first in `order`) and which by blocks.
struct HeadPlan {
  std::vector<int> order;  // rows
  int num_whole = 0;
  bool is_in_place = true;  // whole rows are the first rows of the result

  void make(int num_rows, const uint32_t* const* masks, int num_blocks) {
    order.clear();
    sparse_.clear();
    for (int row = 0; row < num_rows; ++row) (masks && is_sparse(masks[row], num_blocks, num_rows) ? sparse_ : order).push_back(row);
    num_whole = int(order.size());
    is_in_place = num_whole == 0 || order.back() == num_whole - 1;
    order.insert(order.end(), sparse_.begin(), sparse_.end());
  }

 private:
  std::vector<int> sparse_;
};

// This member's blocks of the sparse rows; row `order[i]` of the result belongs to row i of `a`.
inline void sparse_rows(const Linear& w, const Activations& a, const HeadPlan& plan, const uint32_t* const* masks, float* out, int member,
                        int num_members) {
  const int blocks = (w.num_out + kBlock - 1) / kBlock;
  for (int block = 0; block < blocks; ++block) {
    if (block / kBlocksOfTurn % num_members != member) continue;
    for (int i = plan.num_whole; i < int(plan.order.size()); ++i) {
      float* row = out + size_t(plan.order[i]) * w.num_out;
      if (is_allowed(masks[plan.order[i]], block)) block_of_rows(w, block, a, i, i + 1, row + block * kBlock, w.num_out);
      else std::fill_n(row + block * kBlock, std::min(kBlock, w.num_out - block * kBlock), -INFINITY);
    }
  }
}

}  // namespace RADIX_ISA
