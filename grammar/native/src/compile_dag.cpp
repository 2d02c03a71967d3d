// One walk over the encoded expressions, without recursion: order, equal parts made one, calls replaced by what they call.

#include "compile_dag.h"

#include <algorithm>

#include "compile_interner.h"
#include "compile_permanent.h"
#include "compile_unlisted.h"

namespace radix_compile {
namespace {

// A table from 64-bit keys to numbers, with linear probing.
class IdTable {
public:
    explicit IdTable(const std::vector<int64_t>& ids) {
        size_t size = 16;
        while (size < 2 * ids.size()) size *= 2;
        slots_.assign(size, -1);
        keys_ = &ids;
        for (size_t i = 0; i < ids.size(); ++i) {
            size_t slot = slot_of(ids[i]);
            if (slots_[slot] < 0) slots_[slot] = int32_t(i);
        }
    }
    int32_t find(int64_t id) const { return slots_[slot_of(id)]; }

private:
    size_t slot_of(int64_t id) const {
        size_t slot = mix(0, uint64_t(id)) & (slots_.size() - 1);
        while (slots_[slot] >= 0 && (*keys_)[slots_[slot]] != id) slot = (slot + 1) & (slots_.size() - 1);
        return slot;
    }
    std::vector<int32_t> slots_;
    const std::vector<int64_t>* keys_;
};

// A part is known as: its node's number, or, while a call's target is still open, -2 - (the target's place in the walk).
const int32_t kUnknown = -1;

// What is known of each place. Kept from compile to compile, since there are many kept expressions and few are met: only those are cleared.
struct Places {
    enum Progress : char { kNew, kOpen, kDone };
    std::vector<char> progress, has_call;
    std::vector<int32_t> known;
    std::vector<int32_t> met;

    void grow(size_t size) {
        if (size <= progress.size()) return;
        progress.resize(size, kNew);
        has_call.resize(size, 0);
        known.resize(size, kUnknown);
    }
    void clear() {
        for (int32_t place : met) {
            progress[place] = kNew;
            has_call[place] = 0;
            known[place] = kUnknown;
        }
        met.clear();
    }
};

class Walk {
public:
    Walk(const Encoded& encoded, const Limits& limits)
        : limits_(limits), arena_(PermanentArena::instance()), holding_(arena_.reading()), interner_(dag_) {
        whole_ = read_records(encoded, local_, ids_);
        places_.clear();  // of a compile that was given up
        places_.grow(local_.size() + arena_.size());
    }

    Dag run() {
        IdTable table(ids_);
        int32_t start = place_of(table, whole_);
        open(start);
        while (!stack_.empty()) {
            Open& top = stack_.back();
            const Node& node = at(top.place);
            if (top.next == node.num_kids) {
                close(top, node);
                continue;
            }
            int32_t kid = kid_of(table, top.place, node, top.next++);
            parts_.push_back(kid);
            if (progress_[kid] == Places::kNew) {
                open(kid);
            } else if (progress_[kid] == Places::kOpen) {
                recursive_.push_back(kid);
            }
        }
        finish(start);
        return std::move(dag_);
    }

private:
    struct Open {
        int32_t place;
        int32_t next;        // part to visit
        size_t first_part;   // in parts_
    };

    const Node& at(int32_t place) const {
        size_t index = size_t(place);
        return index < local_.size() ? local_[index] : arena_.node(int32_t(index - local_.size()));
    }

    int32_t place_of(const IdTable& table, int64_t id) const {
        int32_t found = table.find(id);
        if (found >= 0) return found;
        found = arena_.find(id);
        if (found < 0) throw CompileError{"encoding", "the encoded grammar is damaged: a part is missing"};
        return int32_t(local_.size()) + found;
    }

    // The place of a part: what a kept expression is made of needs no search.
    int32_t kid_of(const IdTable& table, int32_t place, const Node& node, int32_t index) const {
        int32_t num_local = int32_t(local_.size());
        if (place >= num_local) return num_local + arena_.kids_of(place - num_local)[index];
        return place_of(table, node.kid_ids[index]);
    }

    void open(int32_t place) {
        const Node& node = at(place);
        if (!node.is_leaf() && node.kind != Kind::Choice) ++num_parts_;
        check_num_parts();
        check_bounds(node);
        progress_[place] = Places::kOpen;
        places_.met.push_back(place);
        stack_.push_back({place, 0, parts_.size()});
    }

    void check_num_parts() const {
        if (num_parts_ <= limits_.expressions) return;
        throw CompileError{"expressions", "the grammar has more than limits.expressions=" +
                                              std::to_string(limits_.expressions) + " parts"};
    }

    void check_bounds(const Node& node) const {
        bool is_repeat = node.kind == Kind::Repeat;
        if (!is_repeat && node.kind != Kind::Members) return;
        if (node.lo < 0 || node.hi < -1 || (is_repeat && node.hi >= 0 && node.hi < node.lo)) {
            std::string bounds = std::to_string(node.lo) + " to " + std::to_string(node.hi) + " times has no meaning";
            throw CompileError{is_repeat ? "repeat" : "members",
                               (is_repeat ? "a repeat of " : "a member count of ") + bounds};
        }
        int64_t bound = std::max(node.lo, node.hi);
        if (bound > limits_.repeat_bound) {
            throw CompileError{"repeat_bound", "a repeat of " + std::to_string(bound) +
                                                   " times exceeds limits.repeat_bound=" +
                                                   std::to_string(limits_.repeat_bound)};
        }
    }

    void close(const Open& top, const Node& node) {
        int32_t place = top.place;
        size_t first_part = top.first_part;
        bool calls = node.kind == Kind::Ref || node.kind == Kind::Members;
        for (size_t i = first_part; i < parts_.size(); ++i) {  // a part that is still open contains this one: by a call
            calls = calls || has_call_[parts_[i]] || progress_[parts_[i]] == Places::kOpen;
        }
        if (calls && node.is_product()) {
            throw CompileError{"and", "an intersection or difference may not contain rule calls or member sets"};
        }
        has_call_[place] = calls;
        progress_[place] = Places::kDone;
        if (node.kind == Kind::Ref) {
            int32_t called = resolved(parts_[first_part]);
            known_[place] = called == -2 - place ? never() : called;
        } else {
            known_[place] = node.kind == Kind::Unlisted ? written_out(node, first_part) : interned(node, first_part);
        }
        parts_.resize(first_part);
        stack_.pop_back();
    }

    int32_t interned(const Node& node, size_t first_part) {
        int32_t first_kid = int32_t(dag_.kids.size());
        for (size_t i = first_part; i < parts_.size(); ++i) dag_.kids.push_back(resolved(parts_[i]));
        return interner_.intern(node, first_kid);
    }

    int32_t written_out(const Node& node, size_t first_part) {
        int32_t tail = resolved(parts_[first_part]), special = resolved(parts_[first_part + 1]);
        size_t num_before = dag_.nodes.size();
        int32_t whole = UnlistedTree(dag_, interner_, node, tail, special).build();
        num_parts_ += int64_t(dag_.nodes.size() - num_before);
        check_num_parts();
        return whole;
    }

    // How a part is known now, calls of finished calls followed.
    int32_t resolved(int32_t place) const {
        int32_t known = known_[place];
        while (known <= -2 && known_[-2 - known] != kUnknown) known = known_[-2 - known];
        return known == kUnknown ? -2 - place : known;
    }

    // A call that only ever leads back to itself accepts nothing.
    int32_t never() { return interner_.intern(Node(), int32_t(dag_.kids.size())); }

    void finish(int32_t start) {
        for (int32_t& kid : dag_.kids) {
            if (kid < 0) kid = resolved(-2 - kid);
        }
        dag_.root = resolved(start);
        dag_.is_recursive.assign(dag_.nodes.size(), 0);
        for (int32_t place : recursive_) dag_.is_recursive[resolved(place)] = 1;
    }

    const Limits& limits_;
    PermanentArena& arena_;
    std::shared_lock<std::shared_mutex> holding_;
    std::vector<Node> local_;
    std::vector<int64_t> ids_;
    int64_t whole_;
    Dag dag_;
    Interner interner_;
    static thread_local Places places_;
    std::vector<char>& progress_ = places_.progress;
    std::vector<char>& has_call_ = places_.has_call;
    std::vector<int32_t>& known_ = places_.known;
    std::vector<int32_t> parts_;  // places of the parts of all open nodes
    std::vector<Open> stack_;
    std::vector<int32_t> recursive_;
    int64_t num_parts_ = 0;
};

thread_local Places Walk::places_;

}  // namespace

Dag build_dag(const Encoded& encoded, const Limits& limits) { return Walk(encoded, limits).run(); }

}  // namespace radix_compile
