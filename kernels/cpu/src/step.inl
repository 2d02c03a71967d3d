// A whole step of a pre-norm decoder as one call: embedding, layers, final norm; and the LM head on chosen rows.
//
// All members of the pool run the same function and meet at barriers, about five a layer. When a step has few rows, every member
// normalizes and quantizes all of them into buffers of its own: that costs less than another barrier. Otherwise each owns a slice of
// the rows. Which way is taken changes no result.
namespace RADIX_ISA {

constexpr int kLoneRows = 4;       // up to so many rows, each member prepares all of them itself

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
  explicit Runner(const Weights& weights) : w_(weights), s_(weights.shape), layers_(weights.layers, weights.layers + s_.num_layers), pool_(s_.num_threads, s_.pins_threads != 0), attention_(w_, pool_) {
    w_.layers = layers_.data();
    check_weights();
    lone_.resize(pool_.size());
    for (auto& rows : lone_) rows.reserve(kLoneRows, s_, holds_floats_);
    scratch_.resize(pool_.size());
    for (auto& row : scratch_) row.resize(s_.inner);
    populator_.begin(w_.kv, size_t(s_.ready_bytes));
  }

  bool copies_whole_pages() const override { return attention_.copies_whole_pages(); }

  void step(const Step& step) override {
    step_ = &step;
    const int rows = step.num_tokens;
    reserve(rows);
    attention_.begin(step);
    portions_.begin();
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
      const auto [begin, end] = pool_.share(num_rows, member);
      for (int i = begin; i < end; ++i) take_row(head_input_, i, hidden + size_t(head_plan_.order[i]) * s_.hidden, w_.head);
      pool_.barrier();
      linear(w_.head, head_input_, num_whole, whole, vocab, portions_, 0, member, pool_.size());
      if (num_whole < num_rows) sparse_rows(w_.head, head_input_, head_plan_, masks, out, member, pool_.size());
      if (whole == out) return;
      pool_.barrier();
      const auto [first, last] = pool_.share(num_whole, member);
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
  void check_weights() {
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
    if (s_.head_dim % 8 || s_.head_dim > kMaxHeadDim) throw std::invalid_argument("heads of a size that the kernels do not take");
  }

  void reserve(int rows) {
    shared_.reserve(rows, s_, holds_floats_);
    grow(out_, size_t(rows) * s_.hidden);
    gated_.reserve(rows, s_.inner, holds_floats_);
    if (!gates_spans_) grow(gate_up_, size_t(rows) * 2 * s_.inner);
  }

  // ---------------------------------------------------------------------------------------------- one member's way through the step

  void run(int member) {
    int rows = step_->num_tokens;
    unsigned turn = 0;
    bool is_lone = rows <= kLoneRows;
    Rows* mine = is_lone ? &lone_[member] : &shared_;
    Pool::Share own = is_lone ? Pool::Share{0, rows} : pool_.share(rows, member);
    for (int row = own.begin; row < own.end; ++row)
      unpack_row(w_.embedding, step_->token_ids[row], &mine->residual[size_t(row) * s_.hidden]);
    for (int index = 0; index < s_.num_layers; ++index) {
      const Layer& layer = w_.layers[index];
      const bool is_last = index == s_.num_layers - 1;
      for (int row = own.begin; row < own.end; ++row) normalize(*mine, row, index > 0, layer.attention_norm, layer.qkv);
      if (!is_lone) pool_.barrier();
      linear(layer.qkv, mine->input, rows, attention_.qkv(), attention_.qkv_width(), portions_, turn++, member, pool_.size());
      pool_.barrier();
      attention_.rotate_and_store(index, member);
      pool_.barrier();
      if (is_last && step_->num_rows == 0) return;
      attention_.attend(index, member);
      pool_.barrier();
      const int32_t* sources = nullptr;
      if (is_last && step_->num_rows < rows) {  // nothing reads the other rows any more
        sources = step_->logit_rows;
        Rows* next = step_->num_rows <= kLoneRows ? &lone_[member] : &shared_;
        rows = step_->num_rows;
        is_lone = next != &shared_;
        own = is_lone ? Pool::Share{0, rows} : pool_.share(rows, member);
        for (int row = own.begin; row < own.end; ++row)
          std::memcpy(&next->spare[size_t(row) * s_.hidden], &mine->residual[size_t(sources[row]) * s_.hidden], size_t(s_.hidden) * 4);
        mine = next;
        pool_.barrier();
        if (is_lone || member == 0) mine->residual.swap(mine->spare);
        pool_.barrier();
      }
      for (int row = own.begin; row < own.end; ++row)
        take_row(mine->input, row, attention_.attended(sources ? sources[row] : row), layer.attention_out);
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
    const auto [begin, end] = pool_.share(rows, member);
    for (int row = begin; row < end; ++row) {
      const float* gates = &gate_up_[size_t(row) * 2 * s_.inner];
      gate_row(gates, gates + s_.inner, s_.inner, scratch_[member].data());
      take_row(gated_, row, scratch_[member].data(), layer.down);
    }
  }

  Weights w_;
  Shape s_;
  std::vector<Layer> layers_;
  Pool pool_;
  Attention attention_;
  Populator populator_;
  const Step* step_ = nullptr;
  Rows shared_;
  std::vector<Rows> lone_;
  std::vector<std::vector<float>> scratch_;
  Activations head_input_, gated_;
  HeadPlan head_plan_;
  Lines<float> whole_rows_;  // of the head, where sparse rows lie between them
  Lines<float> out_, gate_up_;
  bool holds_floats_ = false;  // not every linear is quantized
  bool gates_spans_ = true;   // of all layers
  Portions portions_;
};

}  // namespace RADIX_ISA
