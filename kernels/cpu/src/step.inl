// A whole step of a pre-norm decoder as one call: embedding, layers, final norm; and the LM head on chosen rows.
//
// All members of the pool run the same function and meet at barriers, about five a layer. When a step has few rows, every member
// normalizes and quantizes all of them into buffers of its own: that costs less than another barrier. Otherwise each owns a slice of
// the rows. Which way is taken changes no result.
namespace RADIX_ISA {

constexpr int kLoneRows = 4;       // up to so many rows, each member prepares all of them itself

// The rows of the task that a member has in hand; kept from task to task, so that nothing is allocated in a layer.
struct TaskRows {
  std::vector<const float*> queries;
  std::vector<int> visible;
  std::vector<RowState> states;
  std::vector<float*> values;
  std::vector<size_t> at;
  std::vector<float> panel;
  std::vector<const uint16_t*> rounded;  // queries, where products of pairs serve
};

// What one member, or all together, hold of the rows between two layers.
struct Rows {
  Lines<float> residual, spare;
  Activations input;

  void reserve(int rows, const Shape& s, bool holds_floats) {
    grow(residual, size_t(rows) * s.hidden);
    grow(spare, size_t(rows) * s.hidden);
    input.reserve(rows, std::max(s.hidden, s.num_heads * s.head_dim), holds_floats);
  }
};

class Runner : public AnyRunner {
 public:
  explicit Runner(const Weights& weights) : w_(weights), s_(weights.shape), layers_(weights.layers, weights.layers + s_.num_layers), pool_(s_.num_threads, s_.pins_threads != 0) {
    w_.layers = layers_.data();
    check_kinds();
    lone_.resize(pool_.size());
    for (auto& rows : lone_) rows.reserve(kLoneRows, s_, holds_floats_);
    scratch_.resize(pool_.size());
    task_rows_.resize(pool_.size());
    for (auto& rows : task_rows_) rows.panel.resize(size_t(2) * kKeyBlock * s_.head_dim);
    for (auto& row : scratch_) row.resize(s_.inner);
    scale_ = 1.0f / std::sqrt(float(s_.head_dim));
    is_paired_ = takes_pairs(s_);
    if (is_paired_) scale_ *= 1.44269504f;  // the base-2 logarithm of e
    populator_.begin(w_.kv, size_t(s_.ready_bytes));
  }

  bool copies_whole_pages() const override { return is_paired_; }

  void step(const Step& step) override {
    step_ = &step;
    const int rows = step.num_tokens;
    reserve(rows);
    plan_.make(step, s_, pool_.size());
    grow(parts_, plan_.num_parts);
    portions_.begin();
    next_task_.store(0);
    next_group_task_.store(0);
    pool_.run([this](int member) { run(member); });
  }

  void logits(const float* hidden, int num_rows, const uint32_t* const* masks, float* out) override {
    const int vocab = w_.head.num_out;
    head_input_.reserve(num_rows, s_.hidden, holds_floats_);
    head_plan_.make(num_rows, masks, (vocab + kBlock - 1) / kBlock);
    const int num_whole = head_plan_.num_whole;
    if (!head_plan_.is_in_place) grow(whole_rows_, size_t(num_whole) * vocab);
    float* whole = head_plan_.is_in_place ? out : whole_rows_.data();
    portions_.begin();
    pool_.run([&](int member) {
      const auto [begin, end] = slice(num_rows, member);
      for (int i = begin; i < end; ++i) take_row(head_input_, i, hidden + size_t(head_plan_.order[i]) * s_.hidden, w_.head);
      pool_.barrier();
      linear(w_.head, head_input_, num_whole, whole, vocab, portions_, 0, member, pool_.size());
      if (num_whole < num_rows) sparse_rows(w_.head, head_input_, head_plan_, masks, out, member, pool_.size());
      if (whole == out) return;
      pool_.barrier();
      const auto [first, last] = slice(num_whole, member);
      for (int i = first; i < last; ++i)
        std::memcpy(out + size_t(head_plan_.order[i]) * vocab, whole + size_t(i) * vocab, size_t(vocab) * 4);
    });
  }

  void sample(const Sampling& sampling) override {
    Sampler sampler(sampling, pool_.size());
    if (sampling.num_rows + sampling.num_scores < 2) return sampler.run(0);  // not worth waking anybody
    pool_.run([&](int member) { sampler.run(member); });
  }

 private:
  void check_kinds() {
    bool is_readable = can_read(w_.embedding) && can_read(w_.head);
    holds_floats_ = !is_quantized(w_.head);
    for (const Layer& layer : layers_) {
      for (const Linear* linear : {&layer.qkv, &layer.attention_out, &layer.gate_up, &layer.down}) {
        is_readable = is_readable && can_read(*linear);
        holds_floats_ = holds_floats_ || !is_quantized(*linear);
      }
      gates_spans_ = gates_spans_ && gates_spans(layer.gate_up, layer.down);
    }
    if (!is_readable) throw std::invalid_argument("weights packed for another instruction set");
  }

  struct Slice {
    int begin, end;
  };

  Slice slice(int rows, int member) const {
    return {int(int64_t(rows) * member / pool_.size()), int(int64_t(rows) * (member + 1) / pool_.size())};
  }

  int query_width() const { return s_.num_heads * s_.head_dim; }
  int qkv_width() const { return (s_.num_heads + 2 * s_.num_kv_heads) * s_.head_dim; }

  void reserve(int rows) {
    shared_.reserve(rows, s_, holds_floats_);
    grow(qkv_, size_t(rows) * qkv_width());
    grow(attended_, size_t(rows) * query_width());
    if (is_paired_) grow(rounded_queries_, size_t(rows) * query_width());
    grow(out_, size_t(rows) * s_.hidden);
    gated_.reserve(rows, s_.inner, holds_floats_);
    if (!gates_spans_) grow(gate_up_, size_t(rows) * 2 * s_.inner);
    grow(states_, size_t(rows) * s_.num_heads);
  }

  // ---------------------------------------------------------------------------------------------- one member's way through the step

  void run(int member) {
    int rows = step_->num_tokens;
    unsigned turn = 0;
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
      linear(layer.qkv, mine->input, rows, qkv_.data(), qkv_width(), portions_, turn++, member, pool_.size());
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
      linear(layer.attention_out, mine->input, rows, out_.data(), s_.hidden, portions_, turn++, member, pool_.size());
      pool_.barrier();
      for (int row = own.begin; row < own.end; ++row) normalize(*mine, row, true, layer.mlp_norm, layer.gate_up);
      if (!is_lone) pool_.barrier();
      take_gated(layer, mine->input, rows, turn++, member);
      pool_.barrier();
      linear(layer.down, gated_, rows, out_.data(), s_.hidden, portions_, turn++, member, pool_.size());
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

  // This member's share of the inputs of the layer's last linear.
  void take_gated(const Layer& layer, const Activations& input, int rows, unsigned turn, int member) {
    if (gates_spans(layer.gate_up, layer.down))
      return gated_linear(layer.gate_up, input, rows, layer.down, gated_, portions_, turn, member, pool_.size());
    linear(layer.gate_up, input, rows, gate_up_.data(), 2 * s_.inner, portions_, turn, member, pool_.size());
    pool_.barrier();
    const auto [begin, end] = slice(rows, member);
    for (int row = begin; row < end; ++row) {
      const float* gates = &gate_up_[size_t(row) * 2 * s_.inner];
      gate_row(gates, gates + s_.inner, s_.inner, scratch_[member].data());
      take_row(gated_, row, scratch_[member].data(), layer.down);
    }
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

  // One head's key or value into cell [layer, slot, head] of the pool.
  void store_kv(const float* from, size_t cell) {
    const size_t at = cell * s_.head_dim;
    if (s_.kv_kind == kKvF32) {
      std::memcpy((float*)w_.kv + at, from, size_t(s_.head_dim) * 4);
    } else if (s_.kv_kind == kKvBF16) {
      uint16_t* to = (uint16_t*)w_.kv + at;
      for (int d = 0; d < s_.head_dim; ++d) to[d] = to_bf16(from[d]);
    } else {
      w_.kv_scales[cell] = quantize_head(from, s_.head_dim, (int8_t*)w_.kv + at);
    }
  }

  // The turned query, or key and value, of a head as `attention_pairs.inl` reads them.
  void round_and_store(const float* x, int layer, int row, int head) {
#if defined(__AVX512BF16__)
    if (head < s_.num_heads) return round_to_pairs(x, s_.head_dim, &rounded_queries_[(size_t(row) * s_.num_heads + head) * s_.head_dim]);
    const PoolOfLayer<uint16_t> pool(w_, layer);
    const float* value = x + size_t(s_.num_kv_heads) * s_.head_dim;
    store_pairs(x, value, s_, (uint16_t*)pool.keys, (uint16_t*)pool.values, step_->slot_ids[row], head - s_.num_heads);
#else
    (void)x, (void)layer, (void)row, (void)head;
#endif
  }

  // Turns this member's share of the heads of all rows, and writes keys and values to the pool.
  void rotate_and_store(int layer, int member) {
    const int heads = s_.num_heads + s_.num_kv_heads, head_dim = s_.head_dim;
    const auto [begin, end] = slice(step_->num_tokens * heads, member);
    for (int i = begin; i < end; ++i) {
      const int row = i / heads, head = i % heads;
      float* x = &qkv_[size_t(row) * qkv_width() + size_t(head) * head_dim];
      const int kv_head = head - s_.num_heads;
      turn(x, step_->positions[row], kv_head < 0 ? scale_ : 1.0f);
      if (is_paired_) {
        round_and_store(x, layer, row, head);
        continue;
      }
      if (kv_head < 0) continue;
      const int64_t slot = step_->slot_ids[row];
      const size_t cell = cell_of(s_, slot / s_.page_size, int(slot % s_.page_size)) + size_t(layer) * s_.layer_cells + kv_head;
      store_kv(x, cell);
      store_kv(x + size_t(s_.num_kv_heads) * head_dim, cell + size_t(s_.side_cells));
    }
  }

  void attend(int layer, int member) {
    const int rounds = layer + 1;  // the counters only rise: layer l hands out numbers l * n .. (l + 1) * n
    if (!plan_.group_tasks.empty()) {
      take_tasks(next_group_task_, plan_.group_tasks, layer, rounds, task_rows_[member]);
      pool_.barrier();
    }
    take_tasks(next_task_, plan_.tasks, layer, rounds, task_rows_[member]);
    if (plan_.splits.empty()) return;
    pool_.barrier();
    for (const Split& split : plan_.splits) merge_parts(split, member);
  }

  void take_tasks(std::atomic<int64_t>& next, const std::vector<Task>& tasks, int layer, int rounds, TaskRows& taken) {
    const int64_t count = int64_t(tasks.size()), end = rounds * count;
    for (;;) {
      int64_t number = next.load(std::memory_order_relaxed);
      do {
        if (number >= end) return;
      } while (!next.compare_exchange_weak(number, number + 1));
      const Task& task = tasks[size_t(number - int64_t(layer) * count)];
      if (is_paired_) carry_out_pairs(task, layer, taken);
      else if (s_.kv_kind == kKvF32) carry_out<float>(task, layer, taken);
      else if (s_.kv_kind == kKvBF16) carry_out<uint16_t>(task, layer, taken);
      else carry_out<int8_t>(task, layer, taken);
    }
  }

  // The task's rows, those of a key/value head together.
  void gather_rows(const Task& task, TaskRows& taken) {
    const Step& p = *step_;
    const int per_kv = s_.num_heads / s_.num_kv_heads, head_dim = s_.head_dim;
    auto& [queries, visible, states, values, at, panel, rounded] = taken;
    rounded.clear(), queries.clear(), visible.clear(), states.clear(), values.clear(), at.clear();
    const bool is_group = task.group >= 0;
    for (int kv_head = task.first_head; kv_head < task.last_head; ++kv_head)
      for (int i = task.first; i < task.last; ++i) {
        const int sequence = is_group ? plan_.members[i] : task.sequence;
        const int begin = is_group ? p.query_starts[sequence] : i, end = is_group ? p.query_starts[sequence + 1] : i + 1;
        for (int row = begin; row < end; ++row)
          for (int h = kv_head * per_kv; h < (kv_head + 1) * per_kv; ++h) {
            queries.push_back(&qkv_[size_t(row) * qkv_width() + size_t(h) * head_dim]);
            visible.push_back(p.positions[row] + 1);
            values.push_back(&attended_[size_t(row) * query_width() + size_t(h) * head_dim]);
            at.push_back(size_t(row) * s_.num_heads + h);
            if (is_paired_) rounded.push_back(&rounded_queries_[at.back() * head_dim]);
            states.push_back(states_[at.back()]);
            if (task.parts < 0 && (is_group || !plan_.shared_blocks[sequence])) begin_row(states.back(), values.back(), head_dim);
          }
      }
  }

  template <class Kv>
  void carry_out(const Task& task, int layer, TaskRows& taken) {
    gather_rows(task, taken);
    const int num_rows = int(taken.at.size()), per_head = num_rows / (task.last_head - task.first_head);
    const int most = *std::max_element(taken.visible.begin(), taken.visible.end());
    const int32_t* pages = step_->page_tables + size_t(task.sequence) * step_->page_stride;
    float* parts = task.parts < 0 ? nullptr : &parts_[size_t(task.parts)];
    const PoolOfLayer<Kv> pool(w_, layer);
    const int num_heads = task.last_head - task.first_head;
    Slots slots[2];
    KeyBlock<Kv> keys, ahead;
    keys.ahead = &ahead;
    slots[task.first_block & 1].find(s_, pages, task.first_block, most);
    for (int block = task.first_block; block < task.last_block; ++block) {
      const Slots &here = slots[block & 1], &next = slots[(block + 1) & 1];
      slots[(block + 1) & 1].find(s_, pages, block + 1, most);
      for (int head = 0, row = 0; head < num_heads; ++head, row += per_head) {
        pool.find(here, task.first_head + head, keys);
        keys.num_ahead = pool.find_ahead(next, task.first_head, head, num_heads, ahead);
        const RowsOfHead rows{&taken.queries[row], &taken.visible[row], &taken.states[row], &taken.values[row], per_head, parts};
        see(keys, block, here.count, s_.head_dim, rows, taken.panel.data());
        if (parts) parts += per_head * part_size(s_.head_dim);
      }
    }
    if (!parts) end_rows(task, taken);
  }

  void end_rows(const Task& task, TaskRows& taken) {
    for (size_t i = 0; i < taken.at.size(); ++i) {
      if (task.group >= 0) states_[taken.at[i]] = taken.states[i];
      else end_row(taken.states[i], taken.values[i], s_.head_dim);
    }
  }

  void carry_out_pairs(const Task& task, int layer, TaskRows& taken) {
#if defined(__AVX512BF16__)
    gather_rows(task, taken);
    const int num_heads = task.last_head - task.first_head, per_head = int(taken.at.size()) / num_heads;
    const int most = *std::max_element(taken.visible.begin(), taken.visible.end());
    const int32_t* pages = step_->page_tables + size_t(task.sequence) * step_->page_stride;
    const PoolOfLayer<uint16_t> pool(w_, layer);
    float* parts = task.parts < 0 ? nullptr : &parts_[size_t(task.parts)];
    PairBlock blocks[2];
    const int num_turns = (task.last_block - task.first_block) * num_heads;
    const auto find = [&](int turn) {
      const int head = task.first_head + turn % num_heads, block = task.first_block + turn / num_heads;
      blocks[turn % 2].find(s_, pool.keys, pool.values, pages, head, block, turn < num_turns ? most : 0);
    };
    find(0);
    for (int turn = 0; turn < num_turns; ++turn) {
      find(turn + 1);
      const int row = turn % num_heads * per_head;
      const PairRows rows{&taken.rounded[row], &taken.visible[row], &taken.states[row], &taken.values[row], per_head, parts};
      see_pairs(blocks[turn % 2], blocks[(turn + 1) % 2], task.first_block + turn / num_heads, s_, rows);
      if (parts) parts += per_head * part_size(s_.head_dim);
    }
    if (!parts) end_rows(task, taken);
#else
    (void)task, (void)layer, (void)taken;
#endif
  }

  // This member's share of the rows of a split: parts of blocks, left to right, onto what the group's tasks found.
  void merge_parts(const Split& split, int member) {
    const int per_kv = s_.num_heads / s_.num_kv_heads, tokens = split.last - split.first;
    const size_t size = part_size(s_.head_dim);
    const auto [begin, end] = slice(tokens * s_.num_heads, member);
    for (int i = begin; i < end; ++i) {  // as `gather_rows` orders them
      const int row = split.first + i / per_kv % tokens, head = i / (tokens * per_kv) * per_kv + i % per_kv;
      float* values = &attended_[size_t(row) * query_width() + size_t(head) * s_.head_dim];
      RowState state = states_[size_t(row) * s_.num_heads + head];
      if (!plan_.shared_blocks[split.sequence]) begin_row(state, values, s_.head_dim);
      const float* part = &parts_[size_t(split.parts)] + i * size;
      for (int block = split.first_block; block < split.last_block && block * kKeyBlock <= step_->positions[row]; ++block) {
        RowState seen;
        float factors[2];
        std::memcpy(&seen, part, sizeof(seen));
        if (is_paired_) merge_pair_state(state, seen, factors);
        else merge_state(state, seen, factors);
        for (int d = 0; d < s_.head_dim; d += 8) merge_values(values + d, load8(part + kPartHeader + d), factors);
        part += size * tokens * s_.num_heads;
      }
      end_row(state, values, s_.head_dim);
    }
  }

  Weights w_;
  Shape s_;
  std::vector<Layer> layers_;
  Pool pool_;
  Populator populator_;
  float scale_;
  const Step* step_ = nullptr;
  Rows shared_;
  std::vector<Rows> lone_;
  std::vector<std::vector<float>> scratch_;
  std::vector<TaskRows> task_rows_;
  Activations head_input_, gated_;
  HeadPlan head_plan_;
  Lines<float> whole_rows_;  // of the head, where sparse rows lie between them
  Lines<float> qkv_, attended_, out_, gate_up_;
  Lines<uint16_t> rounded_queries_;  // [rows][heads][head_dim] bfloat16, where products of pairs serve
  bool is_paired_ = false;
  bool holds_floats_ = false;  // not every linear is quantized
  bool gates_spans_ = true;   // of all layers
  std::vector<RowState> states_;
  AttentionPlan plan_;
  Portions portions_;
  Lines<float> parts_;  // results of blocks of split tasks
  std::atomic<int64_t> next_task_{0}, next_group_task_{0};
};

}  // namespace RADIX_ISA
