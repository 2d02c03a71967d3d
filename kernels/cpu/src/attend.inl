// Attention of a step: queries, keys and values are turned and rounded, keys and values go to the pool, and the tasks of `attention_plan.inl` are
// carried out in the way that suits the pool's type on this instruction set.
namespace RADIX_ISA {

// The rows of the task that a member has in hand; kept from task to task, so that nothing is allocated in a layer.
struct TaskRows {
  std::vector<const float*> queries;    // where no format of chunks serves
  std::vector<const uint8_t*> rounded;  // the same where one does
  std::vector<int> visible;
  std::vector<RowState> states;
  std::vector<float*> values;
  std::vector<size_t> at;
  std::vector<float> panel;
};

class Attention {
 public:
  Attention(const Weights& weights, Pool& members) : w_(weights), s_(weights.shape), members_(members), task_rows_(members.size()) {
    for (auto& rows : task_rows_) rows.panel.resize(size_t(2) * kKeyBlock * s_.head_dim);
    scale_ = 1.0f / std::sqrt(float(s_.head_dim));
    with_format([&](auto format) {
      query_bytes_ = decltype(format)::query_bytes(s_.head_dim);
      scale_ *= 1.44269504f;  // the base-2 logarithm of e
    });
  }

  bool copies_whole_pages() const { return is_in_chunks(); }

  // Before the members run: room and a plan for `step`, which lives until the next one begins.
  void begin(const Step& step) {
    step_ = &step;
    const size_t rows = size_t(step.num_tokens);
    grow(qkv_, rows * qkv_width());
    grow(attended_, rows * query_width());
    grow(rounded_queries_, rows * s_.num_heads * query_bytes_);
    grow(states_, rows * s_.num_heads);
    plan_.make(step, s_, members_.size());
    grow(parts_, plan_.num_parts);
    next_task_.store(0);
    next_group_task_.store(0);
  }

  int qkv_width() const { return (s_.num_heads + 2 * s_.num_kv_heads) * s_.head_dim; }
  float* qkv() { return qkv_.data(); }                                                 // in: [rows][qkv_width()]
  const float* attended(int row) const { return &attended_[size_t(row) * query_width()]; }  // out: [heads][head_dim]

  // Turns this member's share of the heads of all rows, and writes keys and values to the pool.
  void rotate_and_store(int layer, int member) {
    const int heads = s_.num_heads + s_.num_kv_heads, head_dim = s_.head_dim;
    const auto [begin, end] = members_.share(step_->num_tokens * heads, member);
    for (int i = begin; i < end; ++i) {
      const int row = i / heads, head = i % heads, kv_head = head - s_.num_heads;
      float* x = &qkv_[size_t(row) * qkv_width() + size_t(head) * head_dim];
      float* value = x + size_t(s_.num_kv_heads) * head_dim;
      turn(x, step_->positions[row], kv_head < 0 ? scale_ : 1.0f);
      const bool is_done = with_format([&](auto format) {
        using Format = decltype(format);
        if (kv_head < 0) return Format::round_query(x, head_dim, rounded_query(row, head));
        Format::store(x, value, s_, PoolOfLayer<typename Format::Stored>(w_, layer), step_->slot_ids[row], kv_head);
      });
      if (is_done) continue;
      if (is_spread()) spread(x, head_dim);
      if (kv_head < 0) continue;
      if (is_spread()) spread(value, head_dim);
      const int64_t slot = step_->slot_ids[row];
      const size_t cell = cell_of(s_, slot / s_.page_size, int(slot % s_.page_size)) + size_t(layer) * s_.layer_cells + kv_head;
      store(x, cell, scale_of_key);
      store(value, cell + size_t(s_.side_cells), scale_of_value);
    }
  }

  void attend(int layer, int member) {
    const int rounds = layer + 1;  // the counters only rise: layer l hands out numbers l * n .. (l + 1) * n
    if (!plan_.group_tasks.empty()) {
      take_tasks(next_group_task_, plan_.group_tasks, layer, rounds, task_rows_[member]);
      members_.barrier();
    }
    take_tasks(next_task_, plan_.tasks, layer, rounds, task_rows_[member]);
    if (plan_.splits.empty()) return;
    members_.barrier();
    for (const Split& split : plan_.splits) merge_parts(split, member);
  }

 private:
  int query_width() const { return s_.num_heads * s_.head_dim; }
  bool is_in_chunks() const { return query_bytes_ > 0; }
  bool is_spread() const { return s_.kv_kind == kKvI8; }
  uint8_t* rounded_query(int row, int head) { return &rounded_queries_[(size_t(row) * s_.num_heads + head) * query_bytes_]; }

  // Does `act` with the format of chunks that serves this pool; false if none does.
  template <class Act>
  bool with_format(Act act) const {
#if defined(__AVX512BF16__)
    if (Pairs::serve(s_)) return act(Pairs()), true;
#endif
#if defined(__AVX512VNNI__)
    if (Codes::serve(s_)) return act(Codes()), true;
#endif
    (void)act;
    return false;
  }

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
  void store(const float* from, size_t cell, float (*scale_of)(float)) {
    const size_t at = cell * s_.head_dim;
    if (s_.kv_kind == kKvF32) {
      std::memcpy((float*)w_.kv + at, from, size_t(s_.head_dim) * 4);
    } else if (s_.kv_kind == kKvBF16) {
      uint16_t* to = (uint16_t*)w_.kv + at;
      for (int d = 0; d < s_.head_dim; ++d) to[d] = to_bf16(from[d]);
    } else {
      w_.kv_scales[cell] = scale_of(largest_of_head(from, s_.head_dim));
      quantize_head(from, s_.head_dim, w_.kv_scales[cell], (int8_t*)w_.kv + at);
    }
  }

  void take_tasks(std::atomic<int64_t>& next, const std::vector<Task>& tasks, int layer, int rounds, TaskRows& taken) {
    const int64_t count = int64_t(tasks.size()), end = rounds * count;
    for (;;) {
      int64_t number = next.load(std::memory_order_relaxed);
      do {
        if (number >= end) return;
      } while (!next.compare_exchange_weak(number, number + 1));
      const Task& task = tasks[size_t(number - int64_t(layer) * count)];
      gather_rows(task, taken);
      const bool is_done = with_format([&](auto format) { carry_out_in_chunks<decltype(format)>(task, layer, taken); });
      if (!is_done) carry_out_by_type(task, layer, taken);
      if (task.parts < 0) end_rows(task, taken);
    }
  }

  // The task's rows, those of a key/value head together.
  void gather_rows(const Task& task, TaskRows& taken) {
    const Step& p = *step_;
    const int per_kv = s_.num_heads / s_.num_kv_heads, head_dim = s_.head_dim;
    auto& [queries, rounded, visible, states, values, at, panel] = taken;
    rounded.clear(), queries.clear(), visible.clear(), states.clear(), values.clear(), at.clear();
    const bool is_group = task.group >= 0;
    for (int kv_head = task.first_head; kv_head < task.last_head; ++kv_head)
      for (int i = task.first; i < task.last; ++i) {
        const int sequence = is_group ? plan_.members[i] : task.sequence;
        const int begin = is_group ? p.query_starts[sequence] : i, end = is_group ? p.query_starts[sequence + 1] : i + 1;
        for (int row = begin; row < end; ++row)
          for (int h = kv_head * per_kv; h < (kv_head + 1) * per_kv; ++h) {
            if (is_in_chunks()) rounded.push_back(rounded_query(row, h));
            else queries.push_back(&qkv_[size_t(row) * qkv_width() + size_t(h) * head_dim]);
            visible.push_back(p.positions[row] + 1);
            values.push_back(&attended_[size_t(row) * query_width() + size_t(h) * head_dim]);
            at.push_back(size_t(row) * s_.num_heads + h);
            states.push_back(states_[at.back()]);
            if (task.parts < 0 && (is_group || !plan_.shared_blocks[sequence])) begin_row(states.back(), values.back(), head_dim);
          }
      }
  }

  void carry_out_by_type(const Task& task, int layer, TaskRows& taken) {
    if (s_.kv_kind == kKvF32) carry_out<float>(task, layer, taken);
    else if (s_.kv_kind == kKvBF16) carry_out<uint16_t>(task, layer, taken);
    else carry_out<int8_t>(task, layer, taken);
  }

  template <class Kv>
  void carry_out(const Task& task, int layer, TaskRows& taken) {
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
  }

  template <class Format>
  void carry_out_in_chunks(const Task& task, int layer, TaskRows& taken) {
    const int num_heads = task.last_head - task.first_head, per_head = int(taken.at.size()) / num_heads;
    const int most = *std::max_element(taken.visible.begin(), taken.visible.end());
    const int32_t* pages = step_->page_tables + size_t(task.sequence) * step_->page_stride;
    const PoolOfLayer<typename Format::Stored> pool(w_, layer);
    float* parts = task.parts < 0 ? nullptr : &parts_[size_t(task.parts)];
    typename Format::Block blocks[2];
    const int num_turns = (task.last_block - task.first_block) * num_heads;
    const auto find = [&](int turn) {
      const int head = task.first_head + turn % num_heads, block = task.first_block + turn / num_heads;
      blocks[turn % 2].find(s_, pool, pages, head, block, turn < num_turns ? most : 0);
    };
    find(0);
    for (int turn = 0; turn < num_turns; ++turn) {
      find(turn + 1);
      const int row = turn % num_heads * per_head;
      const ChunkRows rows{&taken.rounded[row], &taken.visible[row], &taken.states[row], &taken.values[row], per_head, parts};
      see_chunks(blocks[turn % 2], blocks[(turn + 1) % 2], task.first_block + turn / num_heads, s_, rows);
      if (parts) parts += per_head * part_size(s_.head_dim);
    }
  }

  void end_rows(const Task& task, TaskRows& taken) {
    for (size_t i = 0; i < taken.at.size(); ++i) {
      if (task.group >= 0) states_[taken.at[i]] = taken.states[i];
      else finish_row(taken.states[i], taken.values[i]);
    }
  }

  void finish_row(const RowState& state, float* values) const {
    end_row(state, values, s_.head_dim);
    if (is_spread()) spread(values, s_.head_dim);  // the matrix is its own inverse
  }

  // This member's share of the rows of a split: parts of blocks, left to right, onto what the group's tasks found.
  void merge_parts(const Split& split, int member) {
    const int per_kv = s_.num_heads / s_.num_kv_heads, tokens = split.last - split.first;
    const size_t size = part_size(s_.head_dim);
    const auto [begin, end] = members_.share(tokens * s_.num_heads, member);
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
        if (is_in_chunks()) merge_chunk_state(state, seen, factors);
        else merge_state(state, seen, factors);
        for (int d = 0; d < s_.head_dim; d += 8) merge_values(values + d, load8(part + kPartHeader + d), factors);
        part += size * tokens * s_.num_heads;
      }
      finish_row(state, values);
    }
  }

  const Weights& w_;
  const Shape& s_;
  Pool& members_;
  float scale_;
  size_t query_bytes_ = 0;  // of a head of a row as a format of chunks rounds it; 0: none serves
  const Step* step_ = nullptr;
  AttentionPlan plan_;
  std::vector<TaskRows> task_rows_;  // of each member
  Lines<float> qkv_, attended_;
  Lines<uint8_t> rounded_queries_;  // [rows][heads][query_bytes_]
  std::vector<RowState> states_;
  Lines<float> parts_;  // results of blocks of split tasks
  std::atomic<int64_t> next_task_{0}, next_group_task_{0};
};

}  // namespace RADIX_ISA
