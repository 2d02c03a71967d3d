// A whole step of a pre-norm decoder as one call: embedding, layers, final norm; and the LM head on chosen rows.
//
// All members of the pool run the same function and meet at barriers, about five a layer. When a step has few rows, every member
// normalizes and quantizes all of them into buffers of its own: that costs less than another barrier. Otherwise each owns a slice of
// the rows. Which way is taken changes no result.
namespace RADIX_ISA {

constexpr int kLoneRows = 4;       // up to so many rows, each member prepares all of them itself
constexpr int kTokensOfTask = 16;  // new tokens of one attention task

struct Task {
  int sequence;  // -1: `group`'s shared blocks
  int group;
  int kv_head, first, last;  // rows of the sequence, or members of the group
};

// The rows of the task that a member has in hand; kept from task to task, so that nothing is allocated in a layer.
struct TaskRows {
  std::vector<const float*> queries;
  std::vector<int> visible;
  std::vector<RowState> states;
  std::vector<float*> values;
  std::vector<size_t> at;
};

// What one member, or all together, hold of the rows between two layers.
struct Rows {
  std::vector<float> residual, spare;
  Activations input;

  void reserve(int rows, const Shape& s) {
    const size_t size = size_t(rows) * s.hidden;
    if (residual.size() < size) {
      residual.resize(size);
      spare.resize(size);
    }
    input.reserve(rows, std::max({s.hidden, s.inner, s.num_heads * s.head_dim}));
  }
};

class Runner : public AnyRunner {
 public:
  explicit Runner(const Weights& weights) : w_(weights), s_(weights.shape), layers_(weights.layers, weights.layers + s_.num_layers), pool_(s_.num_threads) {
    w_.layers = layers_.data();
    lone_.resize(pool_.size());
    for (auto& rows : lone_) rows.reserve(kLoneRows, s_);
    scratch_.resize(pool_.size());
    task_rows_.resize(pool_.size());
    for (auto& row : scratch_) row.resize(std::max({s_.hidden, s_.inner, s_.num_heads * s_.head_dim}));
    scale_ = 1.0f / std::sqrt(float(s_.head_dim));
  }

  void step(const Step& step) override {
    step_ = &step;
    const int rows = step.num_tokens;
    reserve(rows);
    plan_attention();
    pool_.run([this](int member) { run(member); });
  }

  void logits(const float* hidden, int num_rows, float* out) override {
    head_input_.reserve(num_rows, s_.hidden);
    pool_.run([&](int member) {
      const auto [begin, end] = slice(num_rows, member);
      for (int row = begin; row < end; ++row) take_row(head_input_, row, hidden + size_t(row) * s_.hidden, w_.head);
      pool_.barrier();
      linear(w_.head, head_input_, num_rows, out, w_.head.num_out, member, pool_.size());
    });
  }

  void sample(const Sampling& sampling) override {
    Sampler sampler(sampling, pool_.size());
    if (sampling.num_rows + sampling.num_scores < 2) return sampler.run(0);  // not worth waking anybody
    pool_.run([&](int member) { sampler.run(member); });
  }

 private:
  struct Slice {
    int begin, end;
  };

  Slice slice(int rows, int member) const {
    return {int(int64_t(rows) * member / pool_.size()), int(int64_t(rows) * (member + 1) / pool_.size())};
  }

  int query_width() const { return s_.num_heads * s_.head_dim; }
  int qkv_width() const { return (s_.num_heads + 2 * s_.num_kv_heads) * s_.head_dim; }

  void reserve(int rows) {
    shared_.reserve(rows, s_);
    grow(qkv_, size_t(rows) * qkv_width());
    grow(attended_, size_t(rows) * query_width());
    grow(out_, size_t(rows) * s_.hidden);
    grow(gate_up_, size_t(rows) * 2 * s_.inner);
    if (states_.size() < size_t(rows) * s_.num_heads) states_.resize(size_t(rows) * s_.num_heads);
  }

  static void grow(std::vector<float>& buffer, size_t size) {
    if (buffer.size() < size) buffer.resize(size);
  }

  // ---------------------------------------------------------------------------------------------- one member's way through the step

  void run(int member) {
    int rows = step_->num_tokens;
    bool is_lone = rows <= kLoneRows;
    Rows* mine = is_lone ? &lone_[member] : &shared_;
    Slice own = is_lone ? Slice{0, rows} : slice(rows, member);
    for (int row = own.begin; row < own.end; ++row)
      unpack_row(w_.embedding, step_->token_ids[row], &mine->residual[size_t(row) * s_.hidden]);
    for (int index = 0; index < s_.num_layers; ++index) {
      const Layer& layer = w_.layers[index];
      const bool is_last = index == s_.num_layers - 1;
      for (int row = own.begin; row < own.end; ++row) normalize(*mine, row, index > 0, layer.attention_norm, layer.qkv);
      if (!is_lone) pool_.barrier();
      linear(layer.qkv, mine->input, rows, qkv_.data(), qkv_width(), member, pool_.size());
      pool_.barrier();
      rotate_and_store(index, member);
      pool_.barrier();
      if (is_last && step_->num_rows == 0) return;
      attend(index, member);
      pool_.barrier();
      const int32_t* sources = nullptr;
      if (is_last && step_->num_rows < rows) {  // nothing reads the other rows any more
        sources = step_->logit_rows;
        Rows* next = step_->num_rows <= kLoneRows ? &lone_[member] : &shared_;
        rows = step_->num_rows;
        is_lone = next != &shared_;
        own = is_lone ? Slice{0, rows} : slice(rows, member);
        for (int row = own.begin; row < own.end; ++row)
          std::memcpy(&next->spare[size_t(row) * s_.hidden], &mine->residual[size_t(sources[row]) * s_.hidden], size_t(s_.hidden) * 4);
        mine = next;
        pool_.barrier();
        if (is_lone || member == 0) mine->residual.swap(mine->spare);
        pool_.barrier();
      }
      for (int row = own.begin; row < own.end; ++row)
        take_row(mine->input, row, &attended_[size_t(sources ? sources[row] : row) * query_width()], layer.attention_out);
      if (!is_lone) pool_.barrier();
      linear(layer.attention_out, mine->input, rows, out_.data(), s_.hidden, member, pool_.size());
      pool_.barrier();
      for (int row = own.begin; row < own.end; ++row) normalize(*mine, row, true, layer.mlp_norm, layer.gate_up);
      if (!is_lone) pool_.barrier();
      linear(layer.gate_up, mine->input, rows, gate_up_.data(), 2 * s_.inner, member, pool_.size());
      pool_.barrier();
      for (int row = own.begin; row < own.end; ++row) gate(*mine, row, layer.down, scratch_[member].data());
      if (!is_lone) pool_.barrier();
      linear(layer.down, mine->input, rows, out_.data(), s_.hidden, member, pool_.size());
      pool_.barrier();
    }
    if (is_lone && member > 0) return;
    for (int row = own.begin; row < own.end; ++row) {
      float* residual = &mine->residual[size_t(row) * s_.hidden];
      add_row(residual, &out_[size_t(row) * s_.hidden]);
      norm_row(residual, w_.final_norm, step_->hidden + size_t(row) * s_.hidden);
    }
  }

  void add_row(float* x, const float* y) const {
    for (int d = 0; d < s_.hidden; ++d) x[d] += y[d];
  }

  void norm_row(const float* x, const float* weight, float* out) const {
    F8 squares = zero8();
    int d = 0;
    for (; d + 8 <= s_.hidden; d += 8) squares = fma8(load8(x + d), load8(x + d), squares);
    float total = sum_of(squares);
    for (; d < s_.hidden; ++d) total = fma1(x[d], x[d], total);
    const float factor = 1.0f / std::sqrt(total / float(s_.hidden) + s_.epsilon);
    for (d = 0; d < s_.hidden; ++d) out[d] = x[d] * factor * weight[d];
  }

  // residual += the last linear's result (if there is one); the normalized row becomes the input of `next`.
  void normalize(Rows& rows, int row, bool adds, const float* weight, const Linear& next) {
    float* residual = &rows.residual[size_t(row) * s_.hidden];
    if (adds) add_row(residual, &out_[size_t(row) * s_.hidden]);
    float* normed = &rows.spare[size_t(row) * s_.hidden];
    norm_row(residual, weight, normed);
    take_row(rows.input, row, normed, next);
  }

  void gate(Rows& rows, int row, const Linear& down, float* scratch) {
    const float* gates = &gate_up_[size_t(row) * 2 * s_.inner];
    const float* ups = gates + s_.inner;
    const F8 one = all8(1.0f);
    int d = 0;
    for (; d + 8 <= s_.inner; d += 8) {
      const F8 x = load8(gates + d);
      store8(scratch + d, mul(div(x, add(one, exp8(sub(zero8(), x)))), load8(ups + d)));
    }
    for (; d < s_.inner; ++d) scratch[d] = gates[d] / (1.0f + std::exp(-gates[d])) * ups[d];
    take_row(rows.input, row, scratch, down);
  }

  // ---------------------------------------------------------------------------------------------- attention

  void turn(float* head, int position, float scale) const {
    const int pairs = s_.num_rotary / 2;
    const float* cosines = w_.cosines + size_t(position) * pairs;
    const float* sines = w_.sines + size_t(position) * pairs;
    for (int i = 0; i < pairs; ++i) {
      const float x = head[2 * i], y = head[2 * i + 1];
      head[2 * i] = (x * cosines[i] - y * sines[i]) * scale;
      head[2 * i + 1] = (x * sines[i] + y * cosines[i]) * scale;
    }
    for (int d = 2 * pairs; d < s_.head_dim; ++d) head[d] *= scale;
  }

  void store_kv(const float* from, size_t at) {
    if (s_.kv_kind == kKvF32) {
      std::memcpy((float*)w_.kv + at, from, size_t(s_.head_dim) * 4);
    } else {
      uint16_t* to = (uint16_t*)w_.kv + at;
      for (int d = 0; d < s_.head_dim; ++d) to[d] = to_bf16(from[d]);
    }
  }

  // Turns this member's share of the heads of all rows, and writes keys and values to the pool.
  void rotate_and_store(int layer, int member) {
    const int heads = s_.num_heads + s_.num_kv_heads, head_dim = s_.head_dim;
    const auto [begin, end] = slice(step_->num_tokens * heads, member);
    const size_t slot_size = size_t(s_.num_kv_heads) * head_dim;
    for (int i = begin; i < end; ++i) {
      const int row = i / heads, head = i % heads;
      float* x = &qkv_[size_t(row) * qkv_width() + size_t(head) * head_dim];
      const int kv_head = head - s_.num_heads;
      turn(x, step_->positions[row], kv_head < 0 ? scale_ : 1.0f);
      if (kv_head < 0) continue;
      const size_t at = (size_t(layer) * 2 * s_.num_slots + step_->slot_ids[row]) * slot_size + size_t(kv_head) * head_dim;
      store_kv(x, at);
      store_kv(x + slot_size, at + size_t(s_.num_slots) * slot_size);
    }
  }

  // Tasks of a step, the same for all layers: shared blocks of each used group first, then each sequence's own blocks.
  void plan_attention() {
    group_tasks_.clear();
    tasks_.clear();
    const Step& p = *step_;
    shared_blocks_.assign(p.num_sequences, 0);
    std::vector<int> best(p.num_sequences, -1);
    std::vector<int64_t> gain(p.num_sequences, 0);
    for (int g = 0; g < p.num_groups; ++g) {
      const int blocks = p.group_pages[g] * s_.page_size / kKeyBlock;
      const int64_t saved = int64_t(blocks) * (p.group_starts[g + 1] - p.group_starts[g]);
      if (!blocks) continue;
      for (int i = p.group_starts[g]; i < p.group_starts[g + 1]; ++i)
        if (saved > gain[p.group_members[i]]) {
          gain[p.group_members[i]] = saved;
          best[p.group_members[i]] = g;
        }
    }
    members_.assign(p.num_groups, {});
    for (int sequence = 0; sequence < p.num_sequences; ++sequence)
      if (best[sequence] >= 0) members_[best[sequence]].push_back(sequence);
    for (int g = 0; g < p.num_groups; ++g) {
      if (members_[g].size() < 2) continue;
      for (int sequence : members_[g]) shared_blocks_[sequence] = p.group_pages[g] * s_.page_size / kKeyBlock;
      const int count = int(members_[g].size());
      for (int kv_head = 0; kv_head < s_.num_kv_heads; ++kv_head)
        for (int first = 0; first < count; first += kTokensOfTask)
          group_tasks_.push_back({-1, g, kv_head, first, std::min(count, first + kTokensOfTask)});
    }
    for (int sequence = 0; sequence < p.num_sequences; ++sequence)
      for (int kv_head = 0; kv_head < s_.num_kv_heads; ++kv_head)
        for (int first = p.query_starts[sequence]; first < p.query_starts[sequence + 1]; first += kTokensOfTask)
          tasks_.push_back({sequence, -1, kv_head, first, std::min(p.query_starts[sequence + 1], first + kTokensOfTask)});
    next_task_.store(0);
    next_group_task_.store(0);
  }

  void attend(int layer, int member) {
    const int rounds = layer + 1;  // the counters only rise: layer l hands out numbers l * n .. (l + 1) * n
    if (!group_tasks_.empty()) {
      take_tasks(next_group_task_, group_tasks_, layer, rounds, task_rows_[member]);
      pool_.barrier();
    }
    take_tasks(next_task_, tasks_, layer, rounds, task_rows_[member]);
  }

  void take_tasks(std::atomic<int64_t>& next, const std::vector<Task>& tasks, int layer, int rounds, TaskRows& taken) {
    const int64_t count = int64_t(tasks.size()), end = rounds * count;
    for (;;) {
      int64_t number = next.load(std::memory_order_relaxed);
      do {
        if (number >= end) return;
      } while (!next.compare_exchange_weak(number, number + 1));
      const Task& task = tasks[size_t(number - int64_t(layer) * count)];
      s_.kv_kind == kKvF32 ? carry_out<float>(task, layer, taken) : carry_out<uint16_t>(task, layer, taken);
    }
  }

  template <class Kv>
  void carry_out(const Task& task, int layer, TaskRows& taken) {
    const Step& p = *step_;
    const int per_kv = s_.num_heads / s_.num_kv_heads, head_dim = s_.head_dim;
    auto& [queries, visible, states, values, at] = taken;
    queries.clear(), visible.clear(), states.clear(), values.clear(), at.clear();
    const bool is_group = task.sequence < 0;
    for (int i = task.first; i < task.last; ++i) {
      const int sequence = is_group ? members_[task.group][i] : task.sequence;
      const int begin = is_group ? p.query_starts[sequence] : i, end = is_group ? p.query_starts[sequence + 1] : i + 1;
      for (int row = begin; row < end; ++row)
        for (int h = task.kv_head * per_kv; h < (task.kv_head + 1) * per_kv; ++h) {
          queries.push_back(&qkv_[size_t(row) * qkv_width() + size_t(h) * head_dim]);
          visible.push_back(p.positions[row] + 1);
          values.push_back(&attended_[size_t(row) * query_width() + size_t(h) * head_dim]);
          at.push_back(size_t(row) * s_.num_heads + h);
          states.push_back(states_[at.back()]);
          if (is_group || !shared_blocks_[sequence]) begin_row(states.back(), values.back(), head_dim);
        }
    }
    const RowsOfHead rows{queries.data(), visible.data(), states.data(), values.data(), int(queries.size())};
    const int sequence = is_group ? members_[task.group][task.first] : task.sequence;
    const int32_t* pages = p.page_tables + size_t(sequence) * p.page_stride;
    const int last = is_group ? shared_blocks_[sequence] : (p.context_lens[sequence] + kKeyBlock - 1) / kKeyBlock;
    see_blocks<Kv>(w_, layer, task.kv_head, pages, is_group ? 0 : shared_blocks_[sequence], last, rows);
    for (size_t i = 0; i < at.size(); ++i) {
      if (is_group) states_[at[i]] = states[i];
      else end_row(states[i], values[i], head_dim);
    }
  }

  Weights w_;
  Shape s_;
  std::vector<Layer> layers_;
  Pool pool_;
  float scale_;
  const Step* step_ = nullptr;
  Rows shared_;
  std::vector<Rows> lone_;
  std::vector<std::vector<float>> scratch_;
  std::vector<TaskRows> task_rows_;
  Activations head_input_;
  std::vector<float> qkv_, attended_, out_, gate_up_;
  std::vector<RowState> states_;
  std::vector<Task> tasks_, group_tasks_;
  std::vector<std::vector<int>> members_;
  std::vector<int> shared_blocks_;
  std::atomic<int64_t> next_task_{0}, next_group_task_{0};
};

}  // namespace RADIX_ISA
