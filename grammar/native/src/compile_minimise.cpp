// Source: A. Valmari & P. Lehtinen, "Efficient minimization of DFAs with partial transition functions", STACS 2008: blocks of states
// and cords of transitions (those of one label into one block) split each other until nothing changes. O(m log n).

#include "compile_minimise.h"

#include <algorithm>

#include "compile_bits.h"

namespace radix_compile {
namespace {

// A partition of 0..n-1 whose sets can be split by marking some of their elements.
class Partition {
public:
    // One set with everything in it, or none at all.
    explicit Partition(size_t size) : elements_(size), place_(size), set_of_(size, 0) {
        for (size_t i = 0; i < size; ++i) elements_[i] = place_[i] = int32_t(i);
        if (size > 0) add_set(0, size);
    }
    // Sets of equal keys.
    Partition(size_t size, const std::vector<int32_t>& keys) : elements_(size), place_(size), set_of_(size, 0) {
        for (size_t i = 0; i < size; ++i) elements_[i] = int32_t(i);
        std::stable_sort(elements_.begin(), elements_.end(), [&](int32_t a, int32_t b) { return keys[a] < keys[b]; });
        for (size_t first = 0; first < size;) {
            size_t last = first;
            while (last < size && keys[elements_[last]] == keys[elements_[first]]) ++last;
            for (size_t i = first; i < last; ++i) {
                place_[elements_[i]] = int32_t(i);
                set_of_[elements_[i]] = int32_t(sets_.size());
            }
            add_set(first, last);
            first = last;
        }
    }
    size_t num_sets() const { return sets_.size(); }
    int32_t set_of(int32_t element) const { return set_of_[element]; }
    View<int32_t> elements(size_t set) const {
        return {elements_.data() + sets_[set].first, sets_[set].last - sets_[set].first};
    }
    void mark(int32_t element) {
        Set& set = sets_[set_of_[element]];
        size_t place = size_t(place_[element]), border = set.first + set.num_marked;
        if (place < border) return;
        if (set.num_marked++ == 0) touched_.push_back(set_of_[element]);
        std::swap(elements_[place], elements_[border]);
        place_[elements_[place]] = int32_t(place);
        place_[elements_[border]] = int32_t(border);
    }
    // Parts each touched set into its marked elements and the others; the smaller part becomes the new set.
    void split() {
        for (int32_t number : touched_) {
            Set& set = sets_[number];
            size_t border = set.first + set.num_marked;
            set.num_marked = 0;
            if (border == set.last) continue;
            size_t first = set.first, last = border;
            if (border - set.first <= set.last - border) {
                set.first = border;
            } else {
                first = border;
                last = set.last;
                set.last = border;
            }
            for (size_t i = first; i < last; ++i) set_of_[elements_[i]] = int32_t(sets_.size());
            add_set(first, last);
        }
        touched_.clear();
    }

private:
    struct Set {
        size_t first, last, num_marked;
    };
    void add_set(size_t first, size_t last) { sets_.push_back({first, last, 0}); }

    std::vector<int32_t> elements_, place_, set_of_;
    std::vector<Set> sets_;
    std::vector<int32_t> touched_;
};

}  // namespace

std::vector<int32_t> equal_states(size_t num_states, const std::vector<Transition>& transitions,
                                  const std::vector<char>& is_accepting) {
    Partition blocks(num_states);
    for (size_t state = 0; state < num_states; ++state) {
        if (is_accepting[state]) blocks.mark(int32_t(state));
    }
    blocks.split();
    std::vector<int32_t> labels;
    Rows<int32_t> incoming(num_states);
    for (const Transition& transition : transitions) {
        labels.push_back(transition.label);
        incoming.count(size_t(transition.target));
    }
    incoming.allocate();
    for (size_t i = 0; i < transitions.size(); ++i) incoming.add(size_t(transitions[i].target), int32_t(i));
    Partition cords(transitions.size(), labels);
    size_t num_split_blocks = 1;  // one block needs no splitting: the cords are by label already
    for (size_t cord = 0; cord < cords.num_sets(); ++cord) {
        for (int32_t transition : cords.elements(cord)) blocks.mark(transitions[transition].source);
        blocks.split();
        for (; num_split_blocks < blocks.num_sets(); ++num_split_blocks) {
            for (int32_t state : blocks.elements(num_split_blocks)) {
                for (int32_t transition : incoming.of(size_t(state))) cords.mark(transition);
            }
            cords.split();
        }
    }
    std::vector<int32_t> result(num_states);
    for (size_t state = 0; state < num_states; ++state) result[state] = blocks.set_of(int32_t(state));
    return result;
}

}  // namespace radix_compile
