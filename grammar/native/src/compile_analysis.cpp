#include "compile_analysis.h"

#include <algorithm>

namespace radix_compile {
namespace {

const int64_t kSharedSizeMin = 24;    // a shared part larger than this is built once, as a region
const int64_t kUnrollSizeMax = 64;    // a repeat whose copies together stay below this is unrolled
const int64_t kProductSize = 200;     // what an intersection or difference is taken to need
const int64_t kRegionSize = 2;        // what a call costs in its caller
const int64_t kSizeMax = 1 << 20;     // larger sizes are not told apart

}  // namespace

Analysis::Analysis(const Dag& dag)
    : dag_(dag), is_region_(dag.is_recursive), nullable_(dag.nodes.size(), 0), sizes_(dag.nodes.size(), kRegionSize) {
    std::vector<int32_t> uses(dag.nodes.size(), 0);
    for (int32_t kid : dag.kids) ++uses[kid];
    for (size_t i = 0; i < dag.nodes.size(); ++i) {
        const Node& node = dag.nodes[i];
        sizes_[i] = std::min(size_of(node), kSizeMax);
        if (uses[i] > 1 && sizes_[i] > kSharedSizeMin && !node.is_leaf()) is_region_[i] = 1;
    }
}

bool Analysis::is_counted(const Node& repeat) const {
    int64_t bound = repeat.hi < 0 ? repeat.lo : repeat.hi;
    return bound > 1 && bound * size_in_parent(dag_.kids[repeat.first_kid]) > kUnrollSizeMax;
}

int64_t Analysis::size_in_parent(int32_t node) const {
    return is_region_[node] || dag_.nodes[node].is_leaf() ? kRegionSize : sizes_[node];
}

int64_t Analysis::size_of(const Node& node) const {
    switch (node.kind) {
        case Kind::Bytes:
            return 1;
        case Kind::Lit:
            return kRegionSize;
        case Kind::Chars: {
            bool is_ascii = node.info.size() == 0 || node.info[node.info.size() - 1] <= 0x7F;
            return is_ascii ? 1 : 4 + int64_t(node.info.size()) / 2;
        }
        case Kind::Choice:
            return std::max<int64_t>(int64_t(node.info.size()), int64_t(node.text.size()) / 2);
        case Kind::And:
        case Kind::Minus:
        case Kind::Erase:
            return kProductSize;
        case Kind::Members:  // its parts are regions in any case
            return kRegionSize + node.num_kids;
        default:
            break;
    }
    int64_t inner = 0;
    for (int32_t i = 0; i < node.num_kids; ++i) inner += size_in_parent(dag_.kids[node.first_kid + i]);
    inner = std::max<int64_t>(std::max<int64_t>(inner, node.num_kids), 1);
    if (node.kind != Kind::Repeat) return inner;
    if (is_counted(node)) return kRegionSize;
    return inner * std::max<int64_t>(1, node.hi < 0 ? node.lo : node.hi) + 1;
}

void Analysis::find_nullable(const std::vector<char>& product_accepts_empty) {
    for (size_t i = 0; i < dag_.nodes.size(); ++i) {
        nullable_[i] = dag_.nodes[i].is_product() && product_accepts_empty[i];
    }
    bool has_recursion = std::find(dag_.is_recursive.begin(), dag_.is_recursive.end(), 1) != dag_.is_recursive.end();
    for (bool is_changed = true; is_changed;) {  // parts come first, so only recursion asks for more rounds
        is_changed = false;
        for (size_t i = 0; i < dag_.nodes.size(); ++i) {
            if (!nullable_[i] && is_nullable(int32_t(i))) {
                nullable_[i] = 1;
                is_changed = has_recursion;
            }
        }
    }
}

bool Analysis::is_nullable(int32_t number) const {
    const Node& node = dag_.nodes[number];
    View<int32_t> kids = dag_.kids_of(number);
    auto is_known = [this](int32_t kid) { return nullable_[kid] != 0; };
    switch (node.kind) {
        case Kind::Lit:
            return node.text.size() == 0;
        case Kind::Choice:
            return std::find(node.info.begin(), node.info.end(), 0) != node.info.end();
        case Kind::Repeat:
            return node.lo == 0 || is_known(kids[0]);
        case Kind::Alt:
            return std::any_of(kids.begin(), kids.end(), is_known);
        case Kind::Seq:
            return std::all_of(kids.begin(), kids.end(), is_known);
        case Kind::Members: {
            // No member may be empty, so only the text without members is: some clause must have no needs.
            if (node.lo > 0) return false;
            size_t at = 1 + size_t(node.num_kids) - 1;
            int64_t num_clauses = node.info[at++];
            for (int64_t i = 0; i < num_clauses && at < node.info.size(); ++i) {
                if (node.info[at] == 0) return true;
                for (int list = 0; list < 2 && at < node.info.size(); ++list) at += 1 + size_t(node.info[at]);
            }
            return false;
        }
        default:
            return false;
    }
}

}  // namespace radix_compile
