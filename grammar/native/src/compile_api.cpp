// The C border of the native compiler: buffers in, a program body or an error out. No exception leaves here.

#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "compile_analysis.h"
#include "compile_dag.h"
#include "compile_emission.h"
#include "compile_graph.h"
#include "compile_lowering.h"
#include "compile_permanent.h"
#include "compile_product.h"

#define RADIX_EXPORT extern "C" __attribute__((visibility("default")))

namespace radix_compile {
namespace {

// A state that calls everything from `start` as a region: the frame a match runs in.
int32_t outermost(Graph& graph, int32_t start) {
    int32_t region = graph.new_region(start);
    bool is_optional = graph.may_be_empty(start);
    graph.set_entries();
    int32_t outer = graph.new_state(), end = graph.new_end();
    graph.add_call(outer, region, end);
    if (is_optional) graph.add_empty(outer, end);
    return outer;
}

std::vector<uint8_t> compile(const Encoded& encoded, const Bits256& alphabet, const Limits& limits) {
    Dag dag = build_dag(encoded, limits);
    Analysis analysis(dag);
    Products products = build_products(dag, alphabet, limits);
    std::vector<char> product_accepts_empty;
    for (const auto& product : products) {
        product_accepts_empty.push_back(product && product->num_states() > 0 && product->is_accepting[0]);
    }
    analysis.find_nullable(product_accepts_empty);
    Graph graph(limits.states);
    int32_t start = outermost(graph, Lowering(dag, &analysis, graph, alphabet, products).build(dag.root));
    remove_left_recursion(graph);
    if (!remove_dead_ends(graph, start)) {
        throw CompileError{"unsatisfiable", "no output can satisfy this constraint"};
    }
    shorten(graph);
    return emit(graph, start, alphabet, limits);
}

// What Python reads: status 0 and the body, or status 1 and "keyword\nmessage". `data` is from malloc.
struct Answer {
    int64_t status;
    uint8_t* data;
    int64_t size;
};

void fill(Answer* answer, int64_t status, const void* data, size_t size) {
    answer->status = status;
    answer->size = 0;
    answer->data = static_cast<uint8_t*>(std::malloc(size == 0 ? 1 : size));
    if (answer->data == nullptr) {
        answer->status = 1;
        return;
    }
    if (size > 0) std::memcpy(answer->data, data, size);
    answer->size = int64_t(size);
}

void fill_error(Answer* answer, const char* keyword, const char* message) {
    try {
        std::string text = std::string(keyword) + "\n" + message;
        fill(answer, 1, text.data(), text.size());
    } catch (...) {
        answer->status = 1;
        answer->data = nullptr;
        answer->size = 0;
    }
}

template <typename Work>
void guarded(Answer* answer, Work work) {
    try {
        work();
    } catch (const CompileError& error) {
        fill_error(answer, error.keyword.c_str(), error.message.c_str());
    } catch (const std::bad_alloc&) {
        fill_error(answer, "memory", "there is not enough memory to compile this grammar");
    } catch (const std::exception& error) {
        fill_error(answer, "internal", error.what());
    }
}

Encoded encoded_of(const int64_t* words, int64_t num_words, const uint8_t* texts, int64_t text_size, const uint8_t* masks,
                   int64_t mask_size) {
    return {{words, size_t(num_words)}, {texts, size_t(text_size)}, {masks, size_t(mask_size)}};
}

}  // namespace
}  // namespace radix_compile

using namespace radix_compile;

// Compiles an encoded grammar. `alphabet` has 256 flags; `limits` are the fields of `Limits` in their order.
RADIX_EXPORT void radix_compile_grammar(const int64_t* words, int64_t num_words, const uint8_t* texts, int64_t text_size,
                                        const uint8_t* masks, int64_t mask_size, const uint8_t* alphabet,
                                        const int64_t* limits, Answer* answer) {
    guarded(answer, [&] {
        Bits256 allowed;
        for (int byte = 0; byte < 256; ++byte) {
            if (alphabet[byte]) allowed.add(byte);
        }
        Limits budget{limits[0], limits[1], limits[2], limits[3], limits[4], limits[5]};
        std::vector<uint8_t> body =
            compile(encoded_of(words, num_words, texts, text_size, masks, mask_size), allowed, budget);
        fill(answer, 0, body.data(), body.size());
    });
}

// Keeps expressions for the life of the process, see compile_permanent.h.
RADIX_EXPORT void radix_compile_keep(const int64_t* words, int64_t num_words, const uint8_t* texts, int64_t text_size,
                                     const uint8_t* masks, int64_t mask_size, Answer* answer) {
    guarded(answer, [&] {
        PermanentArena::instance().keep(encoded_of(words, num_words, texts, text_size, masks, mask_size));
        fill(answer, 0, nullptr, 0);
    });
}

// Gives back the memory of an answer.
RADIX_EXPORT void radix_compile_free(uint8_t* data) { std::free(data); }
