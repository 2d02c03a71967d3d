// What a compile may be refused for, and the budgets it runs under.
#pragma once

#include <cstdint>
#include <string>

namespace radix_compile {

// Thrown by any pass, caught at the C border. `keyword` names the limit or the construct.
struct CompileError {
    std::string keyword;
    std::string message;
};

// The fields of `grammar.expr.Limits` that concern the passes from expression to program.
struct Limits {
    int64_t expressions;
    int64_t repeat_bound;
    int64_t states;
    int64_t transitions;
    int64_t product_states;
    int64_t program_bytes;
};

inline CompileError too_many_states(int64_t limit) {
    return {"states", "the grammar needs more than limits.states=" + std::to_string(limit) + " automaton states"};
}

inline CompileError product_too_large(int64_t limit) {
    return {"product_states",
            "an intersection or difference of expressions needs more than limits.product_states=" +
                std::to_string(limit) + " states"};
}

}  // namespace radix_compile
