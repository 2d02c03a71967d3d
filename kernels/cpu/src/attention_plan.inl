// One step's attention as tasks that the pool's members take one after another: made once a step, the same for all layers.
//
// A task is some rows over a range of key blocks: shared blocks of a group of sequences first, then each sequence's own. A task takes all
// key/value heads of a block, because their keys lie side by side in the pool: one head at a time reads three times the memory. Where there
// are too few tasks for all members, few rows over many keys are split by blocks, whose results are kept apart and merged left to right;
// many rows are split by heads. No split changes a result. Nothing is allocated once the vectors have grown.
namespace RADIX_ISA {

constexpr int kTokensOfTask = 32;
constexpr int kTasksOfMember = 4;  // wanted, so that all members end at about the same time
constexpr size_t kMaxParts = size_t(4) << 20;  // floats that all splits of a step keep

struct Task {
  int group;                   // -1: a sequence's own blocks
  int sequence;                // one whose pages are read
  int first, last;             // rows of the step, or places in the group's members
  int first_head, last_head;   // key/value heads
  int first_block, last_block;
  int64_t parts;  // where the results of blocks are kept, as an index of floats; -1: merged at once
  int64_t cost;
};

// Rows whose blocks were split: their parts are [block][row of the task][part_size].
struct Split {
  int sequence, first, last, first_block, last_block;
  int64_t parts;
};

class AttentionPlan {
 public:
  std::vector<Task> group_tasks, tasks;
  std::vector<Split> splits;
  std::vector<int> shared_blocks;  // of each sequence, read by a group's tasks
  std::vector<int> members;        // of all used groups, one after the other
  size_t num_parts = 0;            // floats

  void make(const Step& step, const Shape& shape, int num_members) {
    group_tasks.clear(), tasks.clear(), splits.clear(), members.clear();
    num_parts = 0;
    choose_groups(step, shape);
    for (int g = 0; g < step.num_groups; ++g) plan_group(step, shape, g, num_members);
    int units = 0;
    for (int sequence = 0; sequence < step.num_sequences; ++sequence)
      units += (step.query_starts[sequence + 1] - step.query_starts[sequence] + kTokensOfTask - 1) / kTokensOfTask;
    const int pieces = num_members == 1 ? 1 : (kTasksOfMember * num_members + units - 1) / std::max(units, 1);
    for (int sequence = 0; sequence < step.num_sequences; ++sequence)
      for (int first = step.query_starts[sequence]; first < step.query_starts[sequence + 1]; first += kTokensOfTask)
        plan_unit(step, shape, sequence, first, pieces);
    for (auto* list : {&group_tasks, &tasks})
      std::sort(list->begin(), list->end(), [](const Task& a, const Task& b) { return a.cost > b.cost; });
  }

 private:
  std::vector<int> best_;
  std::vector<int64_t> gain_;

  static int blocks_of_group(const Step& step, const Shape& shape, int g) { return step.group_pages[g] * shape.page_size / kKeyBlock; }

  // Of several groups around a sequence, the one that saves most reads.
  void choose_groups(const Step& step, const Shape& shape) {
    shared_blocks.assign(step.num_sequences, 0);
    best_.assign(step.num_sequences, -1);
    gain_.assign(step.num_sequences, 0);
    for (int g = 0; g < step.num_groups; ++g) {
      const int64_t saved = int64_t(blocks_of_group(step, shape, g)) * (step.group_starts[g + 1] - step.group_starts[g]);
      for (int i = step.group_starts[g]; i < step.group_starts[g + 1]; ++i)
        if (saved > gain_[step.group_members[i]]) {
          gain_[step.group_members[i]] = saved;
          best_[step.group_members[i]] = g;
        }
    }
  }

  void plan_group(const Step& step, const Shape& shape, int g, int num_members) {
    const int begin = int(members.size()), blocks = blocks_of_group(step, shape, g);
    for (int i = step.group_starts[g]; i < step.group_starts[g + 1]; ++i)
      if (best_[step.group_members[i]] == g) members.push_back(step.group_members[i]);
    const int end = int(members.size());
    if (end - begin < 2) return members.resize(begin);
    for (int i = begin; i < end; ++i) shared_blocks[members[i]] = blocks;
    const int units = (end - begin + kTokensOfTask - 1) / kTokensOfTask;
    const int pieces = num_members == 1 ? 1 : (kTasksOfMember * num_members + units - 1) / units;
    for (int first = begin; first < end; first += kTokensOfTask)
      add_by_heads(group_tasks, shape, {g, members[first], first, std::min(end, first + kTokensOfTask), 0, 0, 0, blocks, -1, 0}, pieces);
  }

  void plan_unit(const Step& step, const Shape& shape, int sequence, int first, int pieces) {
    const int last = std::min(step.query_starts[sequence + 1], first + kTokensOfTask);
    const int first_block = shared_blocks[sequence], last_block = step.positions[last - 1] / kKeyBlock + 1;
    const int blocks = last_block - first_block, rows = (last - first) * shape.num_heads;
    Task task{-1, sequence, first, last, 0, shape.num_kv_heads, first_block, last_block, -1, 0};
    const size_t parts = size_t(rows) * blocks * part_size(shape.head_dim);
    const bool is_narrow = rows / shape.num_kv_heads < kPanelRows;
    if (pieces == 1 || !is_narrow || blocks < 2 * pieces || num_parts + parts > kMaxParts) return add_by_heads(tasks, shape, task, pieces);
    task.parts = int64_t(num_parts);
    splits.push_back({sequence, first, last, first_block, last_block, task.parts});
    num_parts += parts;
    for (int piece = 0; piece < pieces; ++piece) {
      task.first_block = first_block + blocks * piece / pieces;
      task.last_block = first_block + blocks * (piece + 1) / pieces;
      task.cost = int64_t(rows) * (task.last_block - task.first_block);
      tasks.push_back(task);
      task.parts += int64_t(rows) * (task.last_block - task.first_block) * int64_t(part_size(shape.head_dim));
    }
  }

  static void add_by_heads(std::vector<Task>& list, const Shape& shape, Task task, int pieces) {
    const int heads = shape.num_kv_heads;
    pieces = std::min(pieces, heads);
    for (int piece = 0; piece < pieces; ++piece) {
      task.first_head = heads * piece / pieces;
      task.last_head = heads * (piece + 1) / pieces;
      task.cost = int64_t(task.last - task.first) * (task.last_head - task.first_head) * (task.last_block - task.first_block);
      list.push_back(task);
    }
  }
};

}  // namespace RADIX_ISA
