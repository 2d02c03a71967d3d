#include "compile_emission.h"

#include <algorithm>

#include "compile_call_order.h"
#include "compile_distances.h"
#include "compile_subsets.h"

namespace radix_compile {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "programs are written in little-endian order");

class Emission {
public:
    Emission(Graph& graph, const Bits256& alphabet, const Limits& limits)
        : graph_(graph), alphabet_(alphabet), limits_(limits) {}

    std::vector<uint8_t> run(int32_t start) {
        number_states(start);
        number_regions();
        costs_ = shortest_completions(graph_);
        for (int32_t state : order_) add_state(state);
        add_literals();
        check_sizes();
        make_classes();
        make_ranks();
        scalars_ = {int64_t(distances_.size()), number_[start], num_classes_};
        return written();
    }

private:
    // The states that `start` leads to, in order of discovery.
    void number_states(int32_t start) {
        number_.assign(graph_.num_states(), -1);
        is_used_.assign(graph_.regions.size(), 0);
        visit(start);
        for (size_t i = 0; i < order_.size(); ++i) {
            for (int32_t m = graph_.first_move(order_[i]); m >= 0; m = graph_.moves[m].next) visit_move(graph_.moves[m]);
        }
    }
    void visit(int32_t state) {
        if (number_[state] >= 0) return;
        number_[state] = int32_t(order_.size());
        order_.push_back(state);
    }
    void visit_region(int32_t region) {
        is_used_[region] = 1;
        visit(graph_.regions[region].entry);
    }
    void visit_move(const Move& move) {
        switch (move.kind) {
            case MoveKind::Call:
                visit_region(move.arg);
                visit(move.target);
                break;
            case MoveKind::Loop:
                visit_region(graph_.loops[move.arg].body);
                visit(graph_.loops[move.arg].exit);
                break;
            case MoveKind::Set:
                for (const Member& member : graph_.sets[move.arg].members) visit_region(member.region);
                if (graph_.sets[move.arg].separator >= 0) visit_region(graph_.sets[move.arg].separator);
                visit(graph_.sets[move.arg].exit);
                break;
            default:
                visit(move.target);
        }
    }

    void number_regions() {
        region_number_.assign(graph_.regions.size(), -1);
        loop_number_.assign(graph_.loops.size(), -1);
        set_number_.assign(graph_.sets.size(), -1);
        edge_slot_.assign(graph_.num_states(), -1);
        is_mask_used_.assign(graph_.masks().size(), 0);
        for (size_t region = 0; region < is_used_.size(); ++region) {
            if (!is_used_[region]) continue;
            region_number_[region] = int32_t(region_entry_.size());
            region_entry_.push_back(number_[graph_.regions[region].entry]);
        }
    }

    // All moves of one state; the bytes inside its literals get states of their own later.
    void add_state(int32_t state) {
        int32_t source = number_[state];
        distances_.push_back(costs_[state]);
        if (graph_.is_end(state)) ends_.push_back(source);
        merged_.clear();
        literal_moves_.clear();
        for (int32_t m = graph_.first_move(state); m >= 0; m = graph_.moves[m].next) {
            const Move& move = graph_.moves[m];
            switch (move.kind) {
                case MoveKind::Edge:
                    add_edge(move);
                    break;
                case MoveKind::Literal:
                    literal_moves_.push_back(m);
                    break;
                case MoveKind::Empty:
                    empty_from_.push_back(source);
                    empty_to_.push_back(number_[move.target]);
                    break;
                case MoveKind::Call:
                    call_from_.push_back(source);
                    call_region_.push_back(region_number_[move.arg]);
                    call_to_.push_back(number_[move.target]);
                    break;
                case MoveKind::Loop:
                    loop_from_.push_back(source);
                    loop_id_.push_back(loop_number(move.arg));
                    break;
                case MoveKind::Set:
                    set_from_.push_back(source);
                    set_id_.push_back(set_number(move.arg));
                    break;
            }
        }
        for (const MergedEdge& edge : merged_) {
            int32_t number = edge.mask_number >= 0 ? edge.mask_number : graph_.mask_number(edge.mask);
            add_ranges(source, number, number_[edge.target]);
        }
        for (int32_t m : literal_moves_) {
            View<uint8_t> text = graph_.literal(graph_.moves[m].arg);
            add_byte(source, text[0], int32_t(order_.size() + num_literal_states_));
            num_literal_states_ += text.size() - 1;
            literals_.push_back(m);
        }
    }

    // Edges of one state with the same target become one.
    void add_edge(const Move& move) {
        int32_t slot = edge_slot_[move.target];
        if (slot >= 0 && size_t(slot) < merged_.size() && merged_[slot].target == move.target) {
            merged_[slot].mask = merged_[slot].mask | graph_.mask(move.arg);
            merged_[slot].mask_number = -1;
            return;
        }
        edge_slot_[move.target] = int32_t(merged_.size());
        merged_.push_back({move.target, move.arg, graph_.mask(move.arg)});
    }

    void add_ranges(int32_t source, int32_t mask_number, int32_t target) {
        if (size_t(mask_number) >= is_mask_used_.size()) is_mask_used_.resize(size_t(mask_number) + 1, 0);
        is_mask_used_[mask_number] = 1;
        const Bits256& mask = graph_.mask(mask_number);
        for (int low = next_bit(mask, 0, true); low < 256;) {
            int after = next_bit(mask, low, false);
            add_range(source, low, after - 1, target);
            low = next_bit(mask, after, true);
        }
    }
    // The first byte >= `from` that is (not) in the mask, or 256.
    static int next_bit(const Bits256& mask, int from, bool is_in) {
        for (int word = from >> 6; word < 4; ++word) {
            uint64_t bits = is_in ? mask.word[word] : ~mask.word[word];
            if (word == from >> 6) bits &= ~uint64_t(0) << (from & 63);
            if (bits != 0) return word * 64 + __builtin_ctzll(bits);
        }
        return 256;
    }
    void add_range(int32_t source, int low, int high, int32_t target) {
        edge_from_.push_back(source);
        edge_lo_.push_back(uint8_t(low));
        edge_hi_.push_back(uint8_t(high));
        edge_to_.push_back(target);
    }
    void add_byte(int32_t source, uint8_t byte, int32_t target) {
        literal_bytes_.add(byte);
        add_range(source, byte, byte, target);
    }

    // The states inside literals: the first one of each was given its number by `add_state`.
    void add_literals() {
        if (int64_t(order_.size() + num_literal_states_) > limits_.states) throw too_many_states(limits_.states);
        int32_t state = int32_t(order_.size());
        for (int32_t m : literals_) {
            View<uint8_t> text = graph_.literal(graph_.moves[m].arg);
            int32_t target = graph_.moves[m].target;
            for (size_t i = 1; i < text.size(); ++i, ++state) {
                add_byte(state, text[i], i + 1 < text.size() ? state + 1 : number_[target]);
                distances_.push_back(add_costs(int64_t(text.size() - i), costs_[target]));
            }
        }
    }

    int32_t loop_number(int32_t loop) {
        if (loop_number_[loop] < 0) {
            const Loop& kept = graph_.loops[loop];
            loop_number_[loop] = int32_t(loop_body_.size());
            loop_body_.push_back(region_number_[kept.body]);
            loop_lo_.push_back(kept.lo);
            loop_hi_.push_back(kept.hi);
            loop_exit_.push_back(number_[kept.exit]);
        }
        return loop_number_[loop];
    }

    int32_t set_number(int32_t number) {
        if (set_number_[number] >= 0) return set_number_[number];
        const MemberSet& set = graph_.sets[number];
        set_number_[number] = int32_t(set_exit_.size());
        set_exit_.push_back(number_[set.exit]);
        set_separator_.push_back(set.separator < 0 ? -1 : region_number_[set.separator]);
        set_lo_.push_back(set.lo);
        set_hi_.push_back(set.hi);
        set_flags_.push_back(set.is_ordered ? 1 : 0);
        for (const Member& member : set.members) {
            member_region_.push_back(region_number_[member.region]);
            member_flags_.push_back(member.is_run ? 1 : 0);
        }
        member_start_.push_back(int32_t(member_region_.size()));
        for (const Clause& clause : set.clauses) {
            literals_of_clauses_.insert(literals_of_clauses_.end(), clause.needs.begin(), clause.needs.end());
            for (int32_t member : clause.bars) literals_of_clauses_.push_back(-1 - member);
            literal_start_.push_back(int32_t(literals_of_clauses_.size()));
        }
        clause_start_.push_back(int32_t(literal_start_.size() - 1));
        return set_number_[number];
    }

    void check_sizes() const {
        if (int64_t(edge_from_.size()) > limits_.transitions) {
            throw CompileError{"transitions", "the grammar needs " + std::to_string(edge_from_.size()) +
                                                  " automaton edges, more than limits.transitions=" +
                                                  std::to_string(limits_.transitions)};
        }
    }

    // Class 0 holds the bytes that no edge takes, if there are any.
    void make_classes() {
        std::vector<Bits256> masks;
        for (size_t i = 0; i < is_mask_used_.size(); ++i) {
            if (is_mask_used_[i]) masks.push_back(graph_.mask(int32_t(i)));
        }
        for (int byte = 0; byte < 256; ++byte) {
            if (literal_bytes_.has(byte)) masks.push_back(Bits256::of(byte));
        }
        std::vector<Bits256> classes = byte_classes(masks);
        std::vector<int32_t> class_of(256, -1);
        for (size_t i = 0; i < classes.size(); ++i) {
            for (int byte = next_bit(classes[i], 0, true); byte < 256; byte = next_bit(classes[i], byte + 1, true)) {
                class_of[byte] = int32_t(i);
            }
        }
        int32_t first = std::find(class_of.begin(), class_of.end(), -1) != class_of.end() ? 1 : 0;
        for (int byte = 0; byte < 256; ++byte) class_of_byte_.push_back(uint8_t(class_of[byte] + first));
        num_classes_ = int64_t(classes.size()) + first;
    }

    void make_ranks() {
        std::vector<int32_t> ranks = region_ranks(graph_, is_used_);
        for (size_t region = 0; region < ranks.size(); ++region) {
            if (is_used_[region]) region_rank_.push_back(ranks[region]);
        }
    }

    template <typename T>
    void write(const std::vector<T>& array) {
        uint64_t size = array.size() * sizeof(T);
        const uint8_t* head = reinterpret_cast<const uint8_t*>(&size);
        body_.insert(body_.end(), head, head + sizeof size);
        const uint8_t* data = reinterpret_cast<const uint8_t*>(array.data());
        if (size > 0) body_.insert(body_.end(), data, data + size);
        num_bytes_ += int64_t(size);
    }

    std::vector<uint8_t> written() {
        std::vector<uint8_t> alphabet;
        for (int byte = 0; byte < 256; ++byte) alphabet.push_back(alphabet_.has(byte));
        body_.reserve(1024 + 10 * edge_from_.size() + 8 * (empty_from_.size() + distances_.size()));
        write(alphabet);
        write(class_of_byte_);
        write(scalars_);
        write(edge_from_);
        write(edge_lo_);
        write(edge_hi_);
        write(edge_to_);
        write(empty_from_);
        write(empty_to_);
        write(call_from_);
        write(call_region_);
        write(call_to_);
        write(loop_from_);
        write(loop_id_);
        write(loop_body_);
        write(loop_lo_);
        write(loop_hi_);
        write(loop_exit_);
        write(set_from_);
        write(set_id_);
        write(set_exit_);
        write(set_separator_);
        write(set_lo_);
        write(set_hi_);
        write(set_flags_);
        write(member_start_);
        write(member_region_);
        write(member_flags_);
        write(clause_start_);
        write(literal_start_);
        write(literals_of_clauses_);
        write(ends_);
        write(region_entry_);
        write(region_rank_);
        write(distances_);
        if (num_bytes_ > limits_.program_bytes) {
            throw CompileError{"program_bytes", "the compiled grammar has " + std::to_string(num_bytes_) +
                                                    " bytes, more than limits.program_bytes=" +
                                                    std::to_string(limits_.program_bytes)};
        }
        return std::move(body_);
    }

    struct MergedEdge {
        int32_t target, mask_number;  // -1: a union that has no number yet
        Bits256 mask;
    };
    using I32 = std::vector<int32_t>;
    using I64 = std::vector<int64_t>;
    using U8 = std::vector<uint8_t>;

    Graph& graph_;
    Bits256 alphabet_, literal_bytes_;
    const Limits& limits_;
    I32 number_, order_, region_number_, loop_number_, set_number_, edge_slot_, literal_moves_, literals_;
    std::vector<char> is_used_, is_mask_used_;
    std::vector<MergedEdge> merged_;
    I64 costs_;
    size_t num_literal_states_ = 0;
    int64_t num_classes_ = 0, num_bytes_ = 0;
    U8 body_;
    // The program's arrays, named as in program.py.
    U8 class_of_byte_, edge_lo_, edge_hi_;
    I64 scalars_, loop_lo_, loop_hi_, set_lo_, set_hi_, distances_;
    I32 edge_from_, edge_to_, empty_from_, empty_to_, call_from_, call_region_, call_to_, loop_from_, loop_id_, loop_body_,
        loop_exit_, set_from_, set_id_, set_exit_, set_separator_, set_flags_, member_start_{0}, member_region_, member_flags_,
        clause_start_{0}, literal_start_{0}, literals_of_clauses_, ends_, region_entry_, region_rank_;
};

}  // namespace

std::vector<uint8_t> emit(Graph& graph, int32_t start, const Bits256& alphabet, const Limits& limits) {
    return Emission(graph, alphabet, limits).run(start);
}

}  // namespace radix_compile
